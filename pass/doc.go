// Package pass runs compression methods over a model, in order, and keeps the ledger:
// one row for every weight that says what became of it, or why it was left alone.
//
// A method rewrites nodes and swaps weights for recipes; it computes nothing that the
// writer can compute, and it formats nothing. The package knows no file format, no
// report and no particular method.
package pass
