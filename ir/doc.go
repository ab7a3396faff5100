// Package ir is the graph that passes rewrite: models, graphs, nodes, values and
// tensors whose payloads stay in files until the writer asks for them.
//
// It knows no protobuf, no file format and no compression method; it imports the
// standard library only. Terms are ONNX's own.
package ir
