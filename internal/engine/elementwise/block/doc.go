// Package block is how operators that compute element by element, or along rows, get at the
// numbers of tensors: sets of element types, blocks of a tensor as slices of a Go type with
// float16 and bfloat16 widened to float32, the order in which broadcast and strided
// operands are read, and work shared in pieces that have scratch memory of their own.
//
// It must not know particular operators.
package block
