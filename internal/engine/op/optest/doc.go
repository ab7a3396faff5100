// Package optest runs single operators in the tests and benchmarks of their packages, like the engine: with prepared
// constants, and with outputs and scratch memory that are not cleared.
//
// It must not know particular operators, nor how the engine runs them.
package optest
