// Package onnx reads and writes ONNX model files. Open reads a model's skeleton and
// notes where payloads lie; Save lays a model out and streams payloads into place.
//
// It is the only package that reads and writes protobuf. It walks the wire format itself: a
// field that passes work with becomes part of the ir, every other field rides along
// as the bytes it came in. It must not know what passes do.
package onnx
