// Package prune has the pruning methods. Unstructured pruning sets weights to zero by magnitude: in each tensor (l1) or
// in all tensors together (l1-global), at random (random), or all but n of every m along the reduction axis (nm, N:M
// sparsity). Calibration samples decide in wanda and sparsegpt. Structured pruning zeroes output channels (l2) or
// removes channels from the graph (channel) or layers (layers). Low-rank factorization replaces matrices by two factors
// (lowrank).
//
// Methods that set zeros keep types, shapes and, except sparsegpt, the bits of the other elements: files become smaller
// with a sparse form only. Methods read weights to rank them; the masks are applied by views of the payload. Only
// lowrank and methods with calibration samples hold a whole weight in memory, one at a time. The package does not
// depend on the file format or on sparse forms.
package prune
