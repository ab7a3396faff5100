package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A model is a source of variants. Paths are relative to the root of the repository, or start with SHARED.
type model struct {
	Name, Path string
	Data       string // of inputs and calibration; random inputs without it
	Sample     bool   // part of the sample of tests
}

const (
	shared  = "SHARED"
	sampled = "text/byte_bidi_lstm" // the smallest model whose tables Gather looks up
)

// models cover the layers that have forms of their own: products, convolutions, recurrent layers and lookups. Those of
// the repository come first and are the sample, with one of the others: trained models of the shared material with
// recorded inputs.
func models() []model {
	all := []model{
		{"mlp", "fixtures/mlp.onnx", "fixtures/digits_test.npz", true},
		{"cnn", "fixtures/cnn.onnx", "fixtures/digits_test.npz", true},
		{"recurrent", "fixtures/recurrent.onnx", "", true},
		{"transformer", "fixtures/transformer.onnx", "fixtures/transformer_tokens.npz", true},
		{"opset10", "fixtures/opset10.onnx", "", true},
	}
	for _, path := range []string{
		"audio/mlperf_ad_autoencoder", "audio/mlperf_kws_dscnn", "vision/mlperf_resnet8", "text/byte_bidi_lstm",
		"transformer/mnist_self_attention", "transformer/minilm_l6_v2_vocab3086",
	} {
		folder := shared + "/fixtures/models/" + path
		all = append(all, model{filepath.Base(path), folder + "/model.onnx", folder + "/test_data_set_0",
			path == sampled})
	}
	return all
}

// resolve returns the absolute path of a path of a model.
func resolve(path string) (string, error) {
	root, err := conform.Root()
	if err != nil || path == "" || filepath.IsAbs(path) {
		return path, err
	}
	if rest, ok := strings.CutPrefix(path, shared); ok {
		folder := os.Getenv("MCOMPRESS_SHARED")
		if folder == "" {
			folder = filepath.Join(root, "..", "shared")
		}
		return filepath.Join(folder, rest), nil
	}
	return filepath.Join(root, path), nil
}

// inputs reads the inputs of one run: the first samples of the data, or random ones.
func (m model) inputs(ctx context.Context) ([]conform.Array, error) {
	path, err := resolve(m.Path)
	if err != nil {
		return nil, err
	}
	f, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	set, err := m.dataset(dataset.Inputs(f.Model.Graph), dataset.Ranges(f.Model))
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for batch, err := range set.Batches(ctx, dataset.Order{Size: 4}) {
		if err != nil {
			return nil, err
		}
		return arrays(batch.Inputs)
	}
	return nil, fmt.Errorf("%s: no samples", m.Data)
}

func (m model) dataset(inputs []dataset.Input, ranges map[string][2]int64) (*dataset.Set, error) {
	if m.Data == "" {
		return dataset.Generate(inputs, dataset.Random{Samples: 1, Batch: 4, Ranges: ranges})
	}
	data, err := resolve(m.Data)
	if err != nil {
		return nil, err
	}
	return dataset.Open(data, inputs, nil, dataset.Options{})
}

// dtypes are NumPy's names of element types.
var dtypes = map[ir.DType]string{
	ir.Float: "float32", ir.Double: "float64", ir.Float16: "float16", ir.Bool: "bool", ir.Int8: "int8",
	ir.Int16: "int16", ir.Int32: "int32",
	ir.Int64: "int64", ir.Uint8: "uint8", ir.Uint16: "uint16", ir.Uint32: "uint32", ir.Uint64: "uint64",
}

func arrays(inputs map[string]*ir.Array) ([]conform.Array, error) {
	var list []conform.Array
	for name, a := range inputs {
		dtype, ok := dtypes[a.DType]
		if !ok {
			return nil, fmt.Errorf("input %q has type %v", name, a.DType)
		}
		shape := make([]int, len(a.Shape))
		for i, n := range a.Shape {
			shape[i] = int(n)
		}
		list = append(list, conform.Array{Name: name, DType: dtype, Shape: shape, Data: a.Data})
	}
	return list, nil
}
