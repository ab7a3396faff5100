package report_test

import (
	"context"
	"flag"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

// loadedSteps returns pipelines, their steps separated by "|", each a method with options: all methods with default
// options whose forms ONNX Runtime has kernels for, and combinations.
func loadedSteps() []string {
	list := []string{
		"float16 compute=float16",
		"dynamic-int8 embeddings",
		"weight-int8 block=32",
		"weight-int4 form=matmulnbits",
		"l1 amount=0.9|float16 compute=float16|bitmask",
		"l2 amount=0.5|bsr",
		"float16 compute=float16|weight-int4 form=matmulnbits",
		"float16 compute=float16|weight-int4",
		"float16 compute=float16|weight-int8",
		"float16 compute=float16|dynamic-int8",
		"float16|weight-int4 form=matmulnbits",
		"float16|weight-int4",
		"float16 compute=float16|dynamic-int8 embeddings",
		"lowrank|weight-int4",
		"lowrank|weight-int8",
		"lowrank|float16 compute=float16",
	}
	for _, m := range mcompress.Methods() {
		if m == (quantize.Float4{}).Method() {
			continue
		}
		switch m.Stage {
		case pass.Prune, pass.Quantize:
			if m != (prune.Layers{}).Method() { // few fixtures have repeated layers
				list = append(list, m.Name)
			}
		case pass.Sparsify:
			list = append(list, "l1 amount=0.9|"+m.Name)
		}
	}
	return list
}

// A loadedCase is a pipeline for a target, nil for the default.
type loadedCase struct {
	steps  string
	target *pass.Target
}

// loadedCases are all pipelines for the default target, and those with forms that differ by target for the newest
// runtime.
func loadedCases(newest *pass.Target) (list []loadedCase) {
	for _, steps := range loadedSteps() {
		list = append(list, loadedCase{steps, nil})
		if strings.Contains(steps, "weight-int") {
			list = append(list, loadedCase{steps, newest})
		}
	}
	return list
}

// loadedFixtures have weights of float32, of float16 (half), of float64 and uint8 (typed), and operators of old opsets.
var loadedFixtures = []string{"mlp", "cnn", "transformer", "half", "gemm", "typed", "opset7", "opset10", "recurrent",
	"convtranspose"}

// convolutional are those with convolutions, whose filters take more on CPUs with AVX-512: blocks have 16 channels
// there, the estimate has 8.
var convolutional = []string{"cnn", "opset7", "opset10", "convtranspose"}

// The loaded bytes of a report are the bytes of constants in ONNX Runtime's optimised graph, for every form and type of
// the source.
func TestLoadedBytesAreThoseOfONNXRuntime(t *testing.T) {
	w := conform.Start(t)
	before := map[string]int64{}
	fixtures := loadedFixtures
	if cpu.X86.HasAVX512F {
		fixtures = slices.DeleteFunc(slices.Clone(fixtures), func(name string) bool {
			return slices.Contains(convolutional, name)
		})
	}
	newest, err := pass.ParseTarget("ort", quantize.CPUs)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range loadedCases(newest) {
		steps := c.steps
		for _, name := range fixtures {
			in, out := filepath.Join("..", "fixtures", name+".onnx"), filepath.Join(t.TempDir(), "out.onnx")
			r, err := job.Run(context.Background(), job.Options{
				Input: in, Output: out, Steps: pipeline(t, steps), Version: "test", Workers: 2, Memory: 64 << 20, Target: c.target,
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
			got := r.Report.Totals.LoadedBytes
			agrees(t, name, got.Before, before[name])
			agrees(t, steps+" "+name, got.After, constants(t, w, out))
		}
	}
}

// withoutKernel reports whether a weight has a form that ONNX Runtime has no kernel for.
func withoutKernel(r report.Row) bool {
	return slices.ContainsFunc(append(r.Notes, r.Reason), func(reason report.Reason) bool {
		return reason.Code == pass.NoKernel
	})
}

// agrees requires got within 1 % and 64 bytes of want: fusions remove scalars (bounds of Clip, scales of Resize), 24
// bytes at most, and the shapes and offsets of sparse forms, whose folded size is unknown, add up to 204 bytes in csr.
// Other cases are within 0.4 %.
func agrees(t *testing.T, what string, got, want int64) {
	t.Helper()
	if math.Abs(float64(got-want)) > 0.01*float64(want)+64 {
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
