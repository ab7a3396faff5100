// Package gemm multiplies matrices: float32 and 8-bit integers in cache blocks, with the kernels of package kernel, and
// other types in plain Go. MatMul, Gemm, convolutions, recurrent operators and attention are built on it.
//
// It shares work over a Pool. Every element of a result is summed in an order that depends on K alone, so results are
// bit-identical for any number of workers, for any part of a matrix computed separately, and with or without prepacked
// operands.
//
// It must not know tensors, operators or graphs. It allocates nothing that grows with the matrices: FloatWork and
// IntWork return the size of the scratch memory, which the caller provides. Operands that do not match are a bug of the
// caller and panic.
//
// # Choosing
//
// Float multiplies float32. The right operand B of a FloatProduct is one of four:
//
//   - B, a Matrix with any strides: a computed value.
//   - Packed, made once from a constant weight by PackFloat. It takes as much memory as the weight, which is not needed
//     any more.
//   - Quantized, a constant weight of 2, 4 or 8 bits, which is dequantized panel by panel, or for a single row in
//     registers. Rows of A may be int8 for it.
//   - Panels, a function that writes parts of B on demand: the im2col of a convolution.
//
// Transposed operands are Matrix values with their strides swapped: m.T(). A needs no packing.
//
// Int multiplies 8-bit integers to int32, exactly, with zero points per tensor, per row of A and per column of B. Plain
// multiplies other types: float64, int32, int64, uint32, uint64.
//
// Several products of one shape, such as the heads of attention or the groups of a convolution, are passed to one call,
// which is faster than a loop of calls: their tiles share the workers.
package gemm
