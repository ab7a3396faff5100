package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// Commands check the context at each initializer of each model that they open: split opens its source once more for
// each of two stages. inspect also checks it at each one that it lists.
func TestCommandsCheckTheContextWhileTheyOpenModels(t *testing.T) {
	const n = 500
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	for i := range n {
		m.Graph.AddConst(fmt.Sprint("w", i), &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1}},
			Source: ir.Floats(1)})
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
		{"inspect", 2 * n, exitDone}, {"inspect --text", n, exitDone}, {"memory", n, exitDone},
		{"split --by activations", 3 * n, exitDone},
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

// An interruptedBy is a context that ends when a file appears.
type interruptedBy struct {
	context.Context
	path string
}

func (c interruptedBy) Err() error {
	if _, err := os.Stat(c.path); err == nil {
		return context.Canceled
	}
	return nil
}

// An interrupt right after a result has been published leaves nothing of the run, and no exit code 0 where other
// results are missing.
func TestInterruptsAfterAResult(t *testing.T) {
	for _, c := range []struct {
		command, file string
		code          int
		want          []string
	}{
		{"prune --method wanda --sequential --samples 2 --report none --no-verify -o OUT.onnx", "OUT.onnx", exitDone,
			[]string{"OUT.onnx"}},
		{"quantize --variants fp16,int8 --report none --no-verify -o OUT/", "OUT/onnx/model_fp16.onnx", exitIO,
			[]string{"onnx", "model.onnx", "model_fp16.onnx"}},
	} {
		dir := t.TempDir()
		at := func(text string) string { return strings.ReplaceAll(text, "OUT", filepath.Join(dir, "out")) }
		var stdout, stderr bytes.Buffer
		ctx := interruptedBy{t.Context(), at(c.file)}
		args := append([]string{"mcompress"}, append(strings.Fields(at(c.command)),
			filepath.Join("..", "..", "fixtures", "mlp.onnx"))...)
		code := run(ctx, args, &stdout, &stderr)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.command, code, c.code, stderr.String())
		}
		var left []string
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if path != dir && path != at("OUT") {
				left = append(left, strings.ReplaceAll(d.Name(), "out.onnx", "OUT.onnx"))
			}
			return err
		})
		if err != nil || !slices.Equal(left, c.want) {
			t.Errorf("%s: %v is left, want %v, %v", c.command, left, c.want, err)
		}
	}
}
