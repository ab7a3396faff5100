// Package op is the contract between the interpreter and the operators: the rows of the table of operators, the
// arguments of a call, and the pool of worker threads.
//
// It must not know particular operators, graphs, plans or files. A family of operators is a package next to it that
// exports its rows as Ops; package engine joins them into one table.
package op
