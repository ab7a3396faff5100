//go:generate sh -c "${MCOMPRESS_PYTHON:-../../.venv/bin/python} gen/history.py > history.go"
//go:generate sh -c "${MCOMPRESS_PYTHON:-../../.venv/bin/python} gen/signatures.py > signatures.go"

// Package opset raises a model's version of ONNX's default domain, and infers what
// shape and element type a value has as far as that can be seen from nearby.
//
// It works on ir models alone, without a file format or a compression method,
// and reads payloads of small constants only. Versions are never lowered.
package opset
