package calibrate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc64"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

func fixture(name string) string { return filepath.Join("..", "..", "fixtures", name) }

// observe runs the model on the samples of the arguments and returns the observed values.
func observe(ctx context.Context, t *testing.T, s *pass.Step, model string, args ...string) ([]string, error) {
	t.Helper()
	f, err := onnx.Open(fixture(model))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s.Model = f.Model
	d := calibrate.Data{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	pass.Declare(fs, &d.Source.Samples)
	fs.IntVar(&d.MaxSamples, "calibrate", 8, "")
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	var names, seen []string
	for n := range s.Model.Graph.Nodes() {
		names = append(names, n.Outputs[0].Name)
	}
	err = d.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		seen = append(seen, fmt.Sprint(name, a, crc64.Checksum(a.Data, crc64.MakeTable(crc64.ISO))))
		return nil
	})
	return seen, err
}

func background() *pass.Step { return &pass.Step{Env: pass.Environment{Workers: 2}} }

// Every value is observed once per run, bit-identically for any number of workers and memory limit.
func TestObservedValuesDoNotDependOnWorkers(t *testing.T) {
	for _, model := range []string{"cnn.onnx", "transformer.onnx", "recurrent.onnx", "unsorted.onnx", "subgraph_if.onnx"} {
		want, err := observe(t.Context(), t, &pass.Step{Env: pass.Environment{Workers: 1}}, model)
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		if len(want) == 0 || len(want)%8 != 0 {
			t.Errorf("%s: %d visits in 8 runs", model, len(want))
		}
		for _, s := range []*pass.Step{{Env: pass.Environment{Workers: 3}},
			{Env: pass.Environment{Workers: 2, Limits: memory.Limits{Weights: 64 << 10}}}} {
			got, err := observe(t.Context(), t, s, model)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: values differ with %d workers in %d bytes: %v", model, s.Env.Workers, s.Env.Limits.Weights, err)
			}
		}
	}
}

// Samples are spread over the data, not taken from its start.
func TestSamplesAreSpread(t *testing.T) {
	all, err := observe(t.Context(), t, background(), "cnn.onnx", "--data", fixture("digits_test.npz"), "--calibrate", "0",
		"--limit", "40")
	if err != nil {
		t.Fatal(err)
	}
	some, err := observe(t.Context(), t, background(), "cnn.onnx", "--data", fixture("digits_test.npz"), "--calibrate",
		"4", "--limit", "40")
	if err != nil {
		t.Fatal(err)
	}
	nodes := len(all) / 40
	if len(some) != 4*nodes {
		t.Fatalf("%d visits, want %d", len(some), 4*nodes)
	}
	for i := range 4 {
		if !slices.Equal(some[i*nodes:(i+1)*nodes], all[i*10*nodes:(i*10+1)*nodes]) {
			t.Errorf("sample %d is not sample %d of the data", i, i*10)
		}
	}
}

// Bad data is an error of one line.
func TestBadDataIsAnError(t *testing.T) {
	nan := filepath.Join(t.TempDir(), "nan.npy")
	npy(t, nan, []int64{2, 1, 20, 20}, func(x []float32) { x[700] = math.Float32frombits(0x7fc00000) })
	none := filepath.Join(t.TempDir(), "none.npy")
	npy(t, none, []int64{0, 1, 20, 20}, func([]float32) {})
	wrong := filepath.Join(t.TempDir(), "wrong.npy")
	npy(t, wrong, []int64{2, 7}, func([]float32) {})
	inf := filepath.Join(t.TempDir(), "inf.npy")
	npy(t, inf, []int64{2, 1, 20, 20}, func(x []float32) { x[3] = float32(math.Inf(-1)) })
	for path, want := range map[string]string{nan: "nan.npy: sample 1: input \"input\" holds NaN",
		inf: "inf.npy: sample 0: input \"input\" holds infinities", none: "0 samples", wrong: "wrong.npy",
		filepath.Join(t.TempDir(), "gone.npy"): "gone.npy"} {
		_, err := observe(t.Context(), t, background(), "cnn.onnx", "--data", path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", filepath.Base(path), err, want)
		}
	}
	if _, err := observe(t.Context(), t, background(), "cnn.onnx", "--data", nan, "--calibrate", "-1"); err == nil ||
		!strings.Contains(err.Error(), "calibrate -1") {
		t.Errorf("a negative number of samples: %v", err)
	}
	last := filepath.Join(t.TempDir(), "last.npy")
	npy(t, last, []int64{40, 1, 20, 20}, func(x []float32) { x[30*400] = float32(math.Inf(1)) })
	if _, err := observe(t.Context(), t, background(), "cnn.onnx", "--data", last, "--calibrate", "4"); err == nil ||
		!strings.Contains(err.Error(), "sample 30") {
		t.Errorf("sample 30 of 40, of which four are used: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := observe(ctx, t, background(), "cnn.onnx"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// npy writes an array of zeros modified by change.
func npy(t *testing.T, path string, shape []int64, change func([]float32)) {
	t.Helper()
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }",
		strings.Trim(strings.Join(strings.Fields(fmt.Sprint(shape)), ","), "[]"))
	head += strings.Repeat(" ", 128-10-len(head)-1) + "\n"
	x := make([]float32, (ir.Spec{Shape: shape}).Elems())
	change(x)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	if err := os.WriteFile(path, append(append(b, head...), kernel.Bytes(x)...), 0o600); err != nil {
		t.Fatal(err)
	}
}
