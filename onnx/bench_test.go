package onnx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// manyNodes is a model of n MatMuls in a row, each with a weight and a bias of its own.
func manyNodes(n int) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	g := m.Graph
	g.Name = "many"
	v := g.AddValue("x")
	g.Inputs = append(g.Inputs, v)
	payload := make(ir.Mem, 4*8*8)
	for i := range n / 2 {
		w := g.AddConst(fmt.Sprintf("layers.%d.weight", i),
			&ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{8, 8}}, Source: payload})
		v = g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{v, w})})
	}
	g.AddOutput(v)
	return m
}

// benchModels are a few fixtures and a model of 20,000 nodes.
func benchModels(b *testing.B) []string {
	many := filepath.Join(b.TempDir(), "20000_nodes.onnx")
	mustSave(b, manyNodes(20_000), many, options(b))
	paths := []string{many}
	for _, name := range []string{"mlp.onnx", "transformer.onnx", "subgraph_nested.onnx", "external.onnx"} {
		paths = append(paths, fixture(b, name))
	}
	return paths
}

func BenchmarkOpen(b *testing.B) {
	for _, path := range benchModels(b) {
		b.Run(strings.TrimSuffix(filepath.Base(path), ".onnx"), func(b *testing.B) {
			b.ReportAllocs()
			sized(b, path)
			for b.Loop() {
				f, err := Open(path)
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}

func BenchmarkSave(b *testing.B) {
	for _, path := range benchModels(b) {
		b.Run(strings.TrimSuffix(filepath.Base(path), ".onnx"), func(b *testing.B) {
			f := mustOpen(b, path)
			o := options(b)
			out := filepath.Join(b.TempDir(), "out.onnx")
			b.ReportAllocs()
			sized(b, path)
			for b.Loop() {
				mustSave(b, f.Model, out, o)
			}
		})
	}
}

func sized(b *testing.B, path string) {
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
}
