// Package block gives elementwise and row operators access to the numbers of tensors: sets of element types, blocks of
// a tensor as slices of a Go type with float16 and bfloat16 widened to float32 and small integers to 64 bits, the order
// in which broadcast and strided operands are read, and parallel tasks with scratch memory of their own.
//
// It must not know particular operators.
package block
