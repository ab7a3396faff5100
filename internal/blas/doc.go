// Package blas is gonum's BLAS in float64 with faster Dgemm, Dsyrk and Dtrsm by package kernel: most of the time of
// factorizations is spent in them. Other functions and small operands are gonum's own. Register makes gonum's LAPACK use it;
// Cholesky factors large matrices with it.
//
// Results are deterministic for any number of workers: tiling changes no sum. Package blas must not know the meaning of
// matrices.
package blas
