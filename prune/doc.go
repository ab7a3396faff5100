// Package prune sets weights to zero: the smallest of each tensor (l1) or of all tensors
// together (l1-global), whole output channels (l2), elements drawn by lot (random), or all
// but n of every m along the axis that products sum over (nm).
//
// Types, shapes and the bits of what stays are kept, so a file is as large as before until
// a sparse form stores it. Methods read weights to find thresholds only; what falls is
// described by views, which zero as they are read. The package knows no file format and no
// sparse form.
package prune
