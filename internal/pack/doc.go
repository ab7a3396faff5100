// Package pack reads and writes packed models (.mcz): containers of one or several files in which the payloads of
// tensors are entropy-coded without loss. A container is written and read as a stream, and any tensor is read at random
// through its index; the format is in docs/formats/mcz.md. Its input is files and the positions of tensors in them; it
// must not depend on ONNX.
package pack
