// Package eigen finds eigenvalues and eigenvectors of symmetric matrices, bit-identical
// on every machine: gonum's sums depend on the processor and on build tags, and a model
// that is written must not. Householder's reduction to three diagonals, then implicit QL
// (Golub & Van Loan, Matrix Computations, §8.3; Bowdler et al., Numerische Mathematik 11).
//
// Products are converted where they are added, so that no compiler fuses them with the sum.
package eigen
