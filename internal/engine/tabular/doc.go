// Package tabular holds the operators of domain ai.onnx.ml: trees, linear models, support vector machines, and
// preprocessing of tables.
//
// Where the specification is vague, mostly about models of two classes, it follows ONNX Runtime, since converters were
// written for it. The package must not know graphs, plans or other families.
package tabular
