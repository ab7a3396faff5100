// Package mcompress compresses ONNX models: it quantizes, prunes, fine-tunes and stores weights sparsely, accounts for every byte, and
// measures the accuracy cost by running both models.
//
//	res, err := mcompress.Compress(ctx, "model.onnx", "model.int8.onnx", quantize.DynamicInt8{})
//
// Steps are option structs of the packages quantize, prune, distill and sparse; Methods lists all methods. Options such as WithData and
// WithGates are arguments of the same list. Open, OpenFS and Read give a Model, which can be compressed, inspected, verified and run.
//
// The package does not parse flags and does not print; package cmd/mcompress is the command line program around it.
package mcompress
