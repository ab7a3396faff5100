// Package gemm multiplies matrices: float32 and 8-bit integers in blocks that fit the caches, by
// the kernels of package kernel, and other types in plain Go. MatMul, Gemm, convolutions,
// recurrent operators and attention are built on it.
//
// It shares work over a Pool. Every element of a result is summed in an order that depends on K
// alone, so the bits are the same at any number of workers, for any part of a matrix multiplied by
// itself, and whether operands were packed ahead or not.
//
// It must not know tensors, operators or graphs. It allocates nothing that grows with the
// matrices: FloatWork and IntWork say how much scratch a call wants, which the caller brings.
// What does not fit together is a bug of the caller and panics.
//
// # Choosing
//
// Float multiplies float32. The right operand B of a FloatProduct is one of three:
//
//   - B, a Matrix with any strides: what a node computed.
//   - Packed, made once from a constant weight by PackFloat, or block by block as the weight is read,
//     by NewPackedFloat and Pack. It takes as much memory as the weight, which is not needed any more.
//   - Panels, a function that writes parts of B when they are needed: the im2col of a convolution.
//
// Transposed operands are Matrix values with their strides swapped: m.T(). A needs no packing.
//
// Int multiplies 8-bit integers to int32, exactly, with zero points of scalars, of rows of A and
// of columns of B. Plain multiplies what is left: float64, int32, int64, uint32, uint64.
//
// Several products of one shape, the heads of attention or the groups of a convolution, go into one
// call, which is better than a loop of calls: their tiles share the workers.
package gemm
