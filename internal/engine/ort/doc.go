// Package ort runs models in ONNX Runtime: the engine's second backend, for speed and
// as a judge that shares no code with the interpreter.
//
// It binds ONNX Runtime's C API when it is asked to, so that the program needs neither
// cgo nor the library to start. With the build tag noort, and on platforms that have no
// binding, Load is an error and everything else is as it is.
//
// It must not know graphs, operators or how the interpreter runs them: ONNX Runtime
// reads model files itself.
package ort
