// Package inspect says what an ONNX model holds: files, operators, element types, and each
// constant with its size, readers, duplicates and, where its values are read, zeros.
package inspect
