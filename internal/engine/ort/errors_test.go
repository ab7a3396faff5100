//go:build !noort

package ort_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/ir"
)

// fails checks for an error of one line that contains a text.
func fails(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", parts)
		return
	}
	for _, part := range append(parts, "") {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %q, want %q in one line", err, part)
		}
	}
}

func TestInvalidInputs(t *testing.T) {
	s := parsed(t, `g (float[2] x, string[N] s, seq(float[N]) q, float[2] w = {0, 1}) => (float[2] y, string[N] t, `+
		`seq(float[N]) r) { y = Add(x, w) t = Identity(s) r = Identity(q) }`)
	x, text := ir.ArrayOf([]float32{1, 2}, 2), ir.TextOf([]string{"a"}, 1)
	items := &ir.Array{Kind: ir.Sequence, Items: []*ir.Array{x}}
	for name, c := range map[string]struct {
		in   map[string]*ir.Array
		want []string
	}{
		"missing": {map[string]*ir.Array{"s": text}, []string{`"x" is missing`}},
		"unknown": {map[string]*ir.Array{"z": x}, []string{`unknown input "z"`, `"x", "s", "q"`}},
		"type": {map[string]*ir.Array{"x": ir.ArrayOf([]float64{1, 2}, 2)},
			[]string{`"x" is double[2]`, "float"}},
		"rank": {map[string]*ir.Array{"x": ir.ArrayOf([]float32{1, 2}, 1, 2)}, []string{"rank", "x"}},
		"size": {map[string]*ir.Array{"x": ir.ArrayOf([]float32{1, 2, 3}, 3)},
			[]string{"x", "Got: 3 Expected: 2"}},
		"nil":        {map[string]*ir.Array{"w": nil}, []string{`"w" has no value`}},
		"none":       {map[string]*ir.Array{"q": {Kind: ir.None}}, []string{`"q" has no value`}},
		"kind":       {map[string]*ir.Array{"x": items}, []string{`"x" is seq of 1`}},
		"other kind": {map[string]*ir.Array{"q": x}, []string{"q", "received a tensor"}},
		"inside": {map[string]*ir.Array{"q": {Kind: ir.Sequence, Items: []*ir.Array{x, nil}}},
			[]string{`"q"`, "no value"}},
		"mixed": {map[string]*ir.Array{"q": {Kind: ir.Sequence, Items: []*ir.Array{x, text}}},
			[]string{`"q"`, "same data type"}},
		"empty": {map[string]*ir.Array{"q": {Kind: ir.Sequence}}, []string{`"q"`, "empty sequence"}},
		"short": {map[string]*ir.Array{"x": {DType: ir.Float, Shape: []int64{2}, Data: make([]byte, 7)}},
			[]string{`"x"`, "7 bytes for float[2]"}},
		"few strings": {map[string]*ir.Array{"s": {DType: ir.String, Shape: []int64{2}, Text: []string{""}}},
			[]string{`"s"`, "1 strings for string[2]"}},
		"negative": {map[string]*ir.Array{"x": {DType: ir.Float, Shape: []int64{-2}}}, []string{`"x"`, "negative"}},
		"overflow": {map[string]*ir.Array{"x": {DType: ir.Float, Shape: []int64{1 << 62, 4}}},
			[]string{`"x"`, "too many"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := map[string]*ir.Array{"x": x, "s": text, "q": items}
			if name == "missing" {
				in = map[string]*ir.Array{}
			}
			for n, a := range c.in {
				in[n] = a
			}
			_, err := s.Run(context.Background(), in, nil)
			fails(t, err, c.want...)
		})
	}
}

func TestTypesUnsupportedByONNXRuntime(t *testing.T) {
	s := parsed(t, `g (seq(float[N]) q) => (seq(float[N]) r) { r = Identity(q) }`)
	items := &ir.Array{Kind: ir.Sequence, Items: []*ir.Array{ir.NewArray(ir.Float6E2M3, 1)}}
	_, err := s.Run(context.Background(), map[string]*ir.Array{"q": items}, nil)
	fails(t, err, `"q"`, "float6e2m3")
}

func TestOnlyOutputsCanBeFetched(t *testing.T) {
	s := parsed(t, `g (float[N] x) => (float[N] y, float[N] z) { h = Neg(x) y = Abs(h) z = Exp(h) }`)
	_, err := s.Run(context.Background(), map[string]*ir.Array{"x": ir.NewArray(ir.Float, 1)}, []string{"y", "h"})
	fails(t, err, `fetch "h"`, `"y", "z"`)
}

func TestErrorsOfOperatorsAreOneLine(t *testing.T) {
	s := parsed(t, `g (float[N] x, int64[M] i) => (float[K] y) { y = Gather(x, i) }`)
	in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, 2), "i": ir.ArrayOf([]int64{5}, 1)}
	_, err := s.Run(context.Background(), in, nil)
	fails(t, err, "onnxruntime: ", "Gather", "out of data bounds")
}

func TestInvalidModelFiles(t *testing.T) {
	lib, dir := library(t), t.TempDir()
	model, err := os.ReadFile(written(t, `g (float[N] x) => (float[N] y) { y = Neg(x) }`))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"garbage.onnx": "no model", "cut.onnx": string(model[:len(model)-3]), "empty.onnx": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ort.Open(lib, path, ort.Options{})
		fails(t, err, "onnxruntime: ")
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.onnx"): "File doesn't exist",
		dir:                             "onnxruntime: ",
		"a\x00b":                        "zero byte",
	} {
		_, err := ort.Open(lib, path, ort.Options{})
		fails(t, err, want)
	}
}

func TestInvalidOptions(t *testing.T) {
	lib, path := library(t), written(t, `g (float[N] x) => (float[N] y) { y = Neg(x) }`)
	for want, o := range map[string]ort.Options{
		`level is "most"`: {Level: "most"},
		"-1 threads":      {Threads: -1},
		"Config key":      {Config: map[string]string{"": "x"}},
	} {
		_, err := ort.Open(lib, path, o)
		fails(t, err, want)
	}
}

func TestRunAfterClose(t *testing.T) {
	s := parsed(t, `g (float[N] x) => (float[N] y) { y = Neg(x) }`)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := s.Run(context.Background(), map[string]*ir.Array{"x": ir.NewArray(ir.Float, 1)}, nil)
	fails(t, err, "closed")
}

func TestInvalidLibraryFiles(t *testing.T) {
	_, err := ort.Load(filepath.Join(t.TempDir(), "none.so"))
	fails(t, err, "load ONNX Runtime from", "none.so")
	_, err = ort.Load(written(t, `g (float[N] x) => (float[N] y) { y = Neg(x) }`))
	fails(t, err, "load ONNX Runtime from", "model.onnx")
}

func TestLibraryVersion(t *testing.T) {
	versions, err := conform.Start(t).Versions()
	if err != nil {
		t.Fatal(err)
	}
	if got := library(t).Version; got != versions["onnxruntime"] {
		t.Errorf("got %s, want %s", got, versions["onnxruntime"])
	}
}
