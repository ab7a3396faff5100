//go:generate sh -c "${MCOMPRESS_PYTHON:-../../.venv/bin/python} gen/history.py > history.go"
//go:generate sh -c "${MCOMPRESS_PYTHON:-../../.venv/bin/python} gen/signatures.py > signatures.go"

// Package opset raises a model's version of ONNX's default domain, and infers shapes and
// element types of values from the nodes around them, where these are sufficient.
//
// It works on ir models alone, without a file format or a compression method,
// and reads payloads of small constants only. Versions are never lowered.
package opset
