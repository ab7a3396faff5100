// Package rewrite inserts the nodes of quantized weights: DequantizeLinear, Cast and Mul, MatMulInteger, MatMulNBits,
// lookups.
package rewrite
