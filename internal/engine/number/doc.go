// Package number reads and writes tensors of any numeric type as float64, for rare operators that do not justify a loop
// per type.
//
// It must not know operators. If speed matters, a family has loops of its own.
package number
