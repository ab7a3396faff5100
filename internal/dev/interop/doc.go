// Package interop tests that an independent decoder reads our models: onnx-go, with its own protobuf messages from an
// ONNX of 2019.
//
// It works on files only. onnx-go is imported by tests alone, so
// that no program carries it, and it decodes in a separate process, as a panic in a
// goroutine of a library cannot be recovered.
package interop
