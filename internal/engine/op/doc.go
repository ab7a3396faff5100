// Package op is the contract between the interpreter and the operators it runs: what a row
// of the table of operators is, what an operator is given, and the pool it shares work over.
//
// It must not know particular operators, graphs, plans or files. A family of operators is a
// package beside it that exports its rows as Ops; package engine joins them into one table.
package op
