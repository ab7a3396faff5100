package report_test

import (
	"context"
	"flag"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// loadedSteps returns pipelines, their steps separated by "|", each a method with options: all methods with default options whose forms
// ONNX Runtime has kernels for, and combinations.
func loadedSteps() []string {
	list := []string{
		"float16 compute=float16",
		"dynamic-int8 embeddings",
		"weight-int8 block=32",
		"weight-int4 form=matmulnbits",
		"l1 amount=0.9|float16 compute=float16|bitmask",
		"float16 compute=float16|weight-int4 form=matmulnbits",
		"float16 compute=float16|weight-int4",
		"float16 compute=float16|weight-int8",
		"float16 compute=float16|dynamic-int8",
		"float16|weight-int4 form=matmulnbits",
		"float16|weight-int4",
	}
	for _, m := range mcompress.Methods() {
		switch m.Stage {
		case pass.Prune, pass.Quantize:
			list = append(list, m.Name)
		case pass.Sparsify:
			list = append(list, "l1 amount=0.9|"+m.Name)
		}
	}
	return list
}

// The runtime memory of a report is the bytes of constants in ONNX Runtime's optimised graph, for sources of float32 and float16.
func TestRuntimeMemoryIsThatOfONNXRuntime(t *testing.T) {
	w := conform.Start(t)
	before := map[string]int64{}
	for _, steps := range loadedSteps() {
		for _, name := range fixturesOf(steps) {
			in, out := filepath.Join("..", "fixtures", name+".onnx"), filepath.Join(t.TempDir(), "out.onnx")
			r, err := job.Run(context.Background(), job.Options{
				Input: in, Output: out, Steps: pipeline(t, steps), Version: "test", Workers: 2, Memory: 64 << 20,
			})
			if err != nil {
				t.Fatalf("%s %s: %v", steps, name, err)
			}
			if before[name] == 0 {
				before[name] = constants(t, w, in)
			}
			if slices.ContainsFunc(r.Report.Ledger, withoutKernel) {
				continue
			}
			got := r.Report.Totals.RuntimeBytes
			agrees(t, name, got.Before, before[name])
			agrees(t, steps+" "+name, got.After, constants(t, w, out))
		}
	}
}

// withoutKernel reports whether a weight has a form that ONNX Runtime has no kernel for.
func withoutKernel(r report.Row) bool {
	return slices.ContainsFunc(append(r.Notes, r.Reason), func(reason report.Reason) bool { return reason.Code == pass.NoKernel })
}

// fixturesOf samples the fixtures for pipelines whose forms are folded whatever reads them.
func fixturesOf(steps string) []string {
	if strings.HasPrefix(steps, "l1") || steps == "bfloat16" || steps == "float8" {
		return []string{"mlp", "half"}
	}
	return []string{"mlp", "cnn", "transformer", "half", "gemm"}
}

// agrees requires got within 3 % of want: ONNX Runtime pads channels of convolutions, and chooses the type of scales of float16
// products by their neighbours.
func agrees(t *testing.T, what string, got, want int64) {
	t.Helper()
	if math.Abs(float64(got-want)) > 0.03*float64(want) {
		t.Errorf("%s: %d bytes, %d in ONNX Runtime", what, got, want)
	}
}

func constants(t *testing.T, w *conform.Worker, path string) int64 {
	t.Helper()
	n, err := w.OptimizedConstants(path, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func pipeline(t *testing.T, steps string) []pass.Options {
	t.Helper()
	var all []pass.Options
	for step := range strings.SplitSeq(steps, "|") {
		words := strings.Fields(step)
		i := slices.IndexFunc(mcompress.Methods(), func(m *pass.Method) bool { return m.Name == words[0] })
		if i < 0 {
			t.Fatalf("no method %s", words[0])
		}
		o, err := pass.NewStep(mcompress.Methods()[i], func(fs *flag.FlagSet) error {
			for _, option := range words[1:] {
				name, value, ok := strings.Cut(option, "=")
				if !ok {
					value = "true"
				}
				if err := fs.Set(name, value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}
