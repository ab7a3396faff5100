package onnx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A countdown is a context that ends after a number of checks.
type countdown struct {
	context.Context
	left, checks int
}

func (c *countdown) Err() error {
	c.checks++
	if c.checks > c.left {
		return context.Canceled
	}
	return nil
}

// OpenContext checks the context at each node and initializer, and returns at the first check after its end.
func TestOpenContextStopsAtEveryNodeAndInitializer(t *testing.T) {
	const n = 50
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	for i := range n {
		w := m.Graph.AddConst(fmt.Sprint("w", i),
			&ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1}}, Source: ir.Floats(1)})
		x = m.Graph.Insert(nil, "Add", []*ir.Value{x, w})
	}
	m.Graph.AddOutput(x)
	path := filepath.Join(t.TempDir(), "m.onnx")
	if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	all := &countdown{Context: t.Context(), left: math.MaxInt}
	f, err := onnx.OpenContext(all, path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if all.checks < 2*n {
		t.Errorf("%d checks for %d nodes and %d initializers", all.checks, n, n)
	}
	for left := range all.checks {
		ctx := &countdown{Context: t.Context(), left: left}
		if _, err := onnx.OpenContext(ctx, path); !errors.Is(err, context.Canceled) {
			t.Fatalf("ended after %d checks: %v, want %v", left, err, context.Canceled)
		}
		if ctx.checks != left+1 {
			t.Errorf("ended after %d checks: returned after %d more", left, ctx.checks-left)
		}
	}
}
