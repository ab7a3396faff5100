// Package quanttest has helpers for the tests of several packages of quantize.
package quanttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// RunRecipe measures a recipe with one input.
func RunRecipe(b *testing.B, r *ir.Recipe, payload []byte) {
	b.SetBytes(int64(len(payload)))
	in := []io.ReaderAt{bytes.NewReader(payload)}
	out := make([]io.Writer, len(r.Out))
	for i := range out {
		out[i] = io.Discard
	}
	for b.Loop() {
		if err := r.Run(context.Background(), in, out); err != nil {
			b.Fatal(err)
		}
	}
}

// TensorOf is a tensor in memory of x in a float type of 16 or 32 bits.
func TensorOf(dt ir.DType, shape []int64, x []float32) *ir.Tensor {
	t := &ir.Tensor{Spec: ir.Spec{Name: "w", DType: dt, Shape: shape}}
	if dt == ir.Float {
		t.Source = ir.Mem(kernel.Bytes(x))
		return t
	}
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint16(b, Narrow(dt, v))
	}
	t.Source = ir.Mem(b)
	return t
}

// Narrow rounds to a 16-bit type, half to even.
func Narrow(dt ir.DType, v float32) uint16 {
	if dt == ir.Float16 {
		return float16.Fromfloat32(v).Bits()
	}
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Wide is the value of a 16-bit float.
func Wide(dt ir.DType, h uint16) float32 {
	if dt == ir.Float16 {
		return float16.Frombits(h).Float32()
	}
	return math.Float32frombits(uint32(h) << 16)
}

// OutputsOf are the elements of all outputs of m for the last samples.
func OutputsOf(t *testing.T, samples string, m *ir.Model) (all []float32) {
	t.Helper()
	set, err := dataset.Open(samples, dataset.Inputs(m.Graph), dataset.Outputs(m.Graph), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e, err := engine.Open(context.Background(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var order dataset.Order
	for i := set.Len() / 2; i < set.Len(); i++ {
		order.Index = append(order.Index, i)
	}
	for b, err := range set.Batches(context.Background(), order) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Run(context.Background(), b.Inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range m.Graph.Outputs {
			all = append(all, ir.View[float32](out[v.Name])...)
		}
	}
	return all
}

// Open opens the model at path until t ends.
func Open(t testing.TB, path string) *ir.Model {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Model
}

// Save writes m to a temporary file and returns its path.
func Save(t testing.TB, m *ir.Model, e *ir.Eval) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if _, err := onnx.Save(context.Background(), m, path,
		onnx.SaveOptions{Workers: 2, Memory: 64 << 20, Eval: e}); err != nil {
		t.Fatal(err)
	}
	return path
}
