// Package interop holds, in its tests, that a decoder which shares no code with ours
// reads what we write: onnx-go, with its own protobuf messages from an ONNX of 2019.
//
// It knows of models only that they are files. onnx-go is imported by tests alone, so
// that no program carries it, and it decodes in a process of its own, as a panic in a
// goroutine of a library cannot be recovered.
package interop
