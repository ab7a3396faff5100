// Package backward holds the operators that compute gradients, and the forms of forward operators that store their
// inputs: domain "mcompress" of a training step's graph. The rules of package grad add them. Float and Double are
// computed alike; Double is for tests with finite differences.
//
// It must not know graphs, rules or the use of gradients.
package backward
