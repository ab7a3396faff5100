// Package backward holds the operators that compute gradients, and the forms of forward operators that keep what those need: the
// domain "mcompress" of a training step's graph. Package grad's rules add them; the formulas are the operators'
// derivatives. Float and Double are computed alike, Double for checks by finite differences.
//
// It must not know graphs, rules or what a gradient is used for.
package backward
