// Package spmm multiplies sparse constant matrices by dense ones (SpMM), for MatMul, Gemm and convolutions.
//
// Columns of the dense matrix are in vectors, and the nonzero elements of a row are multiplied with them one after the
// other, as in Elsen et al. 2019, "Fast Sparse ConvNets" (arXiv:1911.09723).
//
// Pack brings the nonzero elements of a weight, which Dense or At lists, into the layout of the kernels. Left and Right
// multiply. Worthwhile decides whether that is faster than the product of the dense weight.
//
// Every element of a result is summed in the order of package gemm, so results are bit-identical to those of the dense
// weight, for any number of workers, if all activations are finite: a zero that is not stored times an infinity is 0
// here and NaN there.
//
// It must not know tensors, operators or graphs.
package spmm
