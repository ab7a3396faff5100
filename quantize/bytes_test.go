package quantize

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

// goldens are the methods whose bytes must not depend on the machine (workers, kernels): all with default options, some
// with others.
func goldens() []variant {
	all := []variant{
		{DynamicInt8{}.Method(), []string{"embeddings"}},
		{DynamicInt8{}.Method(), []string{"asymmetric", "weight-type=uint8"}},
		{DynamicInt8{}.Method(), []string{"per-tensor", "reduce-range"}},
		{WeightInt8{}.Method(), []string{"asymmetric"}},
		{WeightInt4{}.Method(), []string{"algo=hqq", "weight-type=int4"}},
		{WeightInt4{}.Method(), []string{"symmetric", "block=16"}},
	}
	for _, m := range Methods() {
		if !m.Calibrates {
			v := variant{m, nil}
			if m == (Float4{}).Method() {
				v = v.on("embedded")
			}
			all = append(all, v)
		}
	}
	for _, m := range []*pass.Method{WeightInt8{}.Method(), WeightInt4{}.Method(), WeightInt2{}.Method()} {
		for _, target := range []string{"ort", "openvino"} {
			all = append(all, variant{m, nil}.on(target))
		}
	}
	return all
}

var goldenFixtures = []string{"cnn", "gemm", "half", "left", "mlp", "recurrent", "shared", "subgraph_nested",
	"transformer"}

// Outputs are bit-identical with any number of workers and, as their digests are in a file, with and without assembly,
// on any machine. Each has one of two numbers of workers, or both by make test-exhaustive: they have one digest.
func TestBytesAreTheSameEverywhere(t *testing.T) {
	var got strings.Builder
	for i, v := range goldens() {
		for k, name := range goldenFixtures {
			var first []byte
			for _, workers := range conform.Sampled(i+k, []int{1, 8}) {
				out := filepath.Join(t.TempDir(), "out.onnx")
				v.apply(t, fixture(name), out, func(o *job.Options) { o.Workers = workers })
				b := read(t, out)
				if first == nil {
					first = b
				}
				if !bytes.Equal(b, first) {
					t.Errorf("%s %s: %d workers give other bytes", v, name, workers)
				}
			}
			fmt.Fprintf(&got, "%x  %s, %s\n", digest(t, first), v, name)
		}
	}
	compareGolden(t, filepath.Join("testdata", "outputs.sha256"), got.String())
}

// digest is that of the model with graph, weights and functions, but without metadata_props, which hold a digest of the
// recipe.
func digest(t *testing.T, model []byte) [sha256.Size]byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, model, 0o644); err != nil {
		t.Fatal(err)
	}
	m := opened(t, path).Model
	m.Meta = nil
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	if _, err := onnx.Save(t.Context(), m, path+".bare",
		onnx.SaveOptions{Workers: 1, Memory: 1 << 26, Eval: e}); err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(read(t, path+".bare"))
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := string(read(t, path))
	for line := range strings.Lines(got) {
		digest, of, _ := strings.Cut(line, "  ")
		switch {
		case strings.Contains(want, line):
			continue
		case strings.Contains(want, "  "+of):
			t.Errorf("%s: other bytes, digest %s; -update writes it, if the change is intended", strings.TrimSpace(of), digest)
		default:
			t.Errorf("%s has no digest of %s: go test ./quantize -run Bytes -update writes it", path, strings.TrimSpace(of))
		}
	}
	if a, b := strings.Count(got, "\n"), strings.Count(want, "\n"); a < b {
		t.Errorf("%s has %d lines for %d outputs: go test ./quantize -run Bytes -update removes the others", path, b, a)
	}
}

// A weight that is transposed in panels, or read in blocks, is bit-identical to one quantized at once by one worker.
func TestRepeatedRunsGiveTheSameBytes(t *testing.T) {
	s := newBuilder(t, 13)
	x := s.input("x", 1, 2500)
	y := s.node("MatMul", []*ir.Value{x, s.node("Transpose", []*ir.Value{s.weight("w", 1030, 2500)})})
	s.output("y", y, 1, 1030)
	path := s.save()
	var first []byte
	for _, workers := range []int{1, 8, 1} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		dyn.apply(t, path, out, func(o *job.Options) { o.Workers = workers })
		if first == nil {
			first = read(t, out)
		}
		if !bytes.Equal(first, read(t, out)) {
			t.Errorf("%d workers give other bytes", workers)
		}
	}
}
