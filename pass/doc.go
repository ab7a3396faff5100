// Package pass runs compression methods over a model, in order, and keeps the ledger: one row for every weight, with
// its new form or the reason why it was skipped.
//
// A method rewrites nodes and replaces weights by lazy tensors, which are evaluated when the model is written.
// Sentences about its reasons are made by package report. The package is independent of file formats, reports and
// particular methods.
package pass
