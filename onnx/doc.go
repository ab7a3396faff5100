// Package onnx reads and writes ONNX model files. Open reads a model's skeleton and
// records the offsets of payloads; Save computes the layout of a model and streams the payloads to their offsets.
//
// It is the only package that reads and writes protobuf. It walks the wire format itself: a
// field that passes work with becomes part of the ir, every other field rides along
// as the bytes it came in. It must not know what passes do.
package onnx
