// Package conform is the test oracle for models: onnx.checker, ONNX Runtime, NumPy
// and SciPy, through one long-lived Python worker per test binary.
//
// It is for tests and works on files only. It imports neither ir, onnx nor the methods,
// so that the reference implementation shares no code with them. Relative paths are
// relative to the folder of the test.
package conform
