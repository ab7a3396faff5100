// Package memory plans memory from lifetimes and bytes: it places blocks in one arena,
// says what is alive at each step of a run, and finds the largest batch for a budget.
//
// It knows no operators, no graphs and no files. Who runs a model decides what a block
// is, when it is first written and last read; inference and training look the same here.
package memory
