// Package prune makes models smaller by leaving out what matters least. It sets weights to
// zero: the smallest of each tensor (l1) or of all tensors together (l1-global), whole output
// channels (l2), elements drawn by lot (random), or all but n of every m along the axis that
// products sum over (nm). It removes whole channels, so that tensors themselves become
// smaller (channel), and replaces matrices by two factors of lower rank (lowrank).
//
// Where zeros are set, types, shapes and the bits of what stays are kept, so a file is as
// large as before until a sparse form stores it. Methods read weights to rank them only; what
// falls is described by views, which zero or leave out as they are read. Only lowrank holds a
// weight, one at a time. The package knows no file format and no sparse form.
package prune
