// Package mcompress compresses ONNX models: it quantizes, prunes, fine-tunes and stores weights sparsely, accounts for
// every byte, and measures the accuracy cost by running both models.
//
//	res, err := mcompress.Compress(ctx, "model.onnx", "model.int8.onnx", quantize.DynamicInt8{})
//
// Steps are option structs of the packages quantize, prune, distill and sparse; Methods lists all methods. A Request
// has all that a run is asked for: models, steps or a search, data, gates, reports, limits, and where results go. Its
// Run compresses a model:
//
//	res, err := mcompress.Request{
//		Models: []string{"model.onnx"},
//		Search: &mcompress.Search{},
//		Data:   mcompress.Data{Path: "samples.npz"},
//		Gates:  []mcompress.Gate{mcompress.MaxAccuracyDrop(0.01)},
//		Push:   "oci://registry.example.com/models/mlp:1.0",
//	}.Run(ctx)
//
// The clients of object storage, OCI registries and MLflow are packages of their own, s3, registry/oci and
// registry/mlflow: a program imports those that it uses, as image/png is imported for package image.
//
// Open, OpenFS and Read give a Model, which can be compressed, inspected, verified and run. ExitCode classifies errors.
//
// The package does not parse flags and does not print; package cmd/mcompress is the command line program around it:
// flags that fill a Request, one call, and its results as text.
package mcompress
