// Package conform asks for a second opinion on models: onnx.checker, ONNX Runtime,
// NumPy and SciPy, through one long-lived Python worker per test binary.
//
// It is for tests. It knows files only: nothing of ir, onnx or the methods, so that
// what judges them shares no code with them. Every method takes a relative path as
// relative to the folder of the test.
package conform
