// Package blas factors matrices by Cholesky decomposition. It is gonum's BLAS in float64 with faster Dgemm, Dsyrk and Dtrsm by package
// kernel: most of the time of a factorization is spent in them. Other functions and small operands are gonum's own.
//
// Results are deterministic for any number of workers: tiling changes no sum. Package blas must not know the meaning of
// matrices.
package blas
