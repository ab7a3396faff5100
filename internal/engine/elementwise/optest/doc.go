// Package optest runs single operators in the tests of the families that compute element by element or along axes.
//
// It must not know particular operators, nor how the engine runs them.
package optest
