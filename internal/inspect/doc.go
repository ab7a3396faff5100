// Package inspect lists the contents of an ONNX model: files, operators, element types, and each
// constant with its size, consumers, duplicates and, where its values are read, sparsity.
package inspect
