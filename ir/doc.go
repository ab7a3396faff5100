// Package ir is the graph that passes rewrite: models, graphs, nodes, values and
// tensors whose payloads stay in files until they are written.
//
// It does not depend on protobuf, a file format or a compression method; it imports the
// standard library only. Terms are ONNX's own.
package ir
