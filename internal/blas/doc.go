// Package blas is gonum's BLAS in float64 with the products of matrices that factorisations spend
// their time in made by package kernel: Dgemm, Dsyrk and Dtrsm. The rest, and what is small, is
// gonum's own. Register makes gonum's LAPACK run on it; Cholesky factors large matrices with it.
//
// Results are the same at any number of workers: how a product is cut changes no sum. Package blas
// must not know what matrices stand for.
package blas
