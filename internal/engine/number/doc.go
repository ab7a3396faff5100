// Package number reads and writes tensors of any type of numbers as float64, for operators that are computed so
// rarely that a loop for each type is not worth having.
//
// It must not know operators. Where speed counts, a family has loops of its own.
package number
