// Package ort runs models in ONNX Runtime: the engine's second backend, for speed and as a reference implementation
// that shares no code with the interpreter.
//
// It binds ONNX Runtime's C API at run time, so that the program starts without cgo and without the library. With the
// build tag noort, and on platforms without a binding, Load is an error and everything else is unchanged.
//
// It must not know graphs, operators or how the interpreter runs them: ONNX Runtime reads model files itself.
package ort
