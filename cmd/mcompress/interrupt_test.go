package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A counted is a context that counts checks of its end.
type counted struct {
	context.Context
	checks atomic.Int64
}

func (c *counted) Err() error {
	c.checks.Add(1)
	return c.Context.Err()
}

// Commands check the context at each initializer of each model that they open: split opens its source once more for each of two stages. inspect
// also checks it at each one that it lists.
func TestCommandsCheckTheContextWhileTheyOpenModels(t *testing.T) {
	const n = 500
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	for i := range n {
		m.Graph.AddConst(fmt.Sprint("w", i), &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1}}, Source: ir.Floats(1)})
	}
	y := m.Graph.Insert(nil, "Relu", []*ir.Value{m.Graph.Insert(nil, "Relu", []*ir.Value{x})})
	y.Type = x.Type
	m.Graph.AddOutput(y)
	model := filepath.Join(t.TempDir(), "m.onnx")
	if _, err := onnx.Save(t.Context(), m, model, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		least   int64
		code    int
	}{
		{"inspect", 2 * n, exitDone}, {"inspect --text", n, exitDone}, {"memory", n, exitDone}, {"split --by activations", 3 * n, exitDone},
		{"memory --training", n, exitInput}, // the model has no trainable weights
	} {
		ctx := &counted{Context: t.Context()}
		var stdout, stderr bytes.Buffer
		if code := run(ctx, append(strings.Fields("mcompress "+c.command), model), &stdout, &stderr); code != c.code {
			t.Errorf("%s: exit code %d: %s", c.command, code, stderr.String())
		}
		if got := ctx.checks.Load(); got < c.least {
			t.Errorf("%s: %d checks for %d initializers", c.command, got, n)
		}
	}
}
