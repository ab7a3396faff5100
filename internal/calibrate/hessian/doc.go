// Package hessian has the second moments of a layer's inputs and what methods solve with them: the Cholesky factor, and
// error feedback in blocks of rows (optimal brain surgeon), as in GPTQ (Frantar et al. 2022, arXiv:2210.17323) and
// SparseGPT (Frantar and Alistarh 2023, arXiv:2301.00774).
//
// A layer is y = x·W with W of K rows by N columns. An error E of W has the output error tr(Eᵀ·H·E), where the Hessian
// H is the sum of xᵀ·x over the calibration samples. It must not know models, files, or what replaces a weight.
package hessian
