// Package tabular holds the operators of domain ai.onnx.ml: trees, linear models, support vectors, and what
// brings tables into shape for them.
//
// Where the specification is vague, mostly about models of two classes, it does as ONNX Runtime does, since
// converters were written for it. The package must not know graphs, plans or other families.
package tabular
