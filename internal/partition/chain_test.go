package partition_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	results "github.com/mcompress/mcompress/report/partition"
)

func save() onnx.SaveOptions {
	return onnx.SaveOptions{Workers: 1, Memory: 8 << 20, Eval: ir.NewEval("")}
}

// split writes up to n stages and returns their folder.
func split(t *testing.T, path string, n int) (dir string, w *results.Split) {
	t.Helper()
	dir = t.TempDir()
	for ; n > 0; n-- {
		var err error
		if w, err = partition.Write(t.Context(), path, dir, partition.Options{Stages: n, By: "weights"}, save()); err == nil {
			return dir, w
		}
		if n == 1 {
			t.Fatal(err)
		}
	}
	return dir, w
}

// A runner runs one file.
type runner func(ctx context.Context, path string, in map[string]*ir.Array) (map[string]*ir.Array, error)

func embedded(ctx context.Context, path string, in map[string]*ir.Array) (map[string]*ir.Array, error) {
	f, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := engine.Open(ctx, f.Model, engine.Options{NoFusion: true})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.Run(ctx, in, nil)
}

// unoptimised runs ONNX Runtime without graph optimizations.
func unoptimised(lib *ort.Library) runner {
	return func(ctx context.Context, path string, in map[string]*ir.Array) (_ map[string]*ir.Array, err error) {
		s, err := ort.Open(lib, path, ort.Options{Threads: 1, Level: "none"})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		return s.Run(ctx, in, nil)
	}
}

// follow runs a chain by its manifest.
func follow(ctx context.Context, dir string, m *results.Manifest, in map[string]*ir.Array,
	run runner) (map[string]*ir.Array, error) {
	made := map[string]map[string]*ir.Array{"": in}
	pick := func(list []results.Arrival) map[string]*ir.Array {
		values := map[string]*ir.Array{}
		for _, a := range list {
			values[a.Name] = made[a.From][a.Name]
		}
		return values
	}
	for _, s := range m.Stages {
		out, err := run(ctx, filepath.Join(dir, s.File), pick(s.Inputs))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.File, err)
		}
		made[s.File] = out
	}
	return pick(m.Outputs), nil
}

// same compares results bit by bit. ONNX Runtime computes float16 in float32, and rounds at file borders.
func same(got, want map[string]*ir.Array) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if g == nil || g.String() != w.String() {
			return fmt.Errorf("output %q is %v, want %v", name, g, w)
		}
		if !bytes.Equal(g.Data, w.Data) && !(w.DType == ir.Float16 && near(g.Data, w.Data)) {
			return fmt.Errorf("output %q differs", name)
		}
	}
	return nil
}

// near reports whether float16 values differ by at most four units in the last place of the largest.
func near(got, want []byte) bool {
	var most, off float64
	for i := 0; i < len(want); i += 2 {
		g := float16.Frombits(binary.LittleEndian.Uint16(got[i:])).Float32()
		w := float16.Frombits(binary.LittleEndian.Uint16(want[i:])).Float32()
		most, off = max(most, math.Abs(float64(w))), max(off, math.Abs(float64(g-w)))
	}
	return off <= 4*most/1024
}

func sample(t *testing.T, g *ir.Graph) map[string]*ir.Array {
	t.Helper()
	set, err := dataset.Generate(dataset.Inputs(g), dataset.Random{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for b, err := range set.Batches(t.Context(), dataset.Order{Size: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		return b.Inputs
	}
	return nil
}

func label(path string) string {
	if name := filepath.Base(path); name != "model.onnx" {
		return name
	}
	return filepath.Base(filepath.Dir(path))
}

// A chain is bit-identical to the whole model in both engines; onnx.checker accepts each stage if it
// accepts the model.
func chains(t *testing.T, paths []string, n int) (several int) {
	w := conform.Start(t)
	lib, err := ort.Load(conform.ORTLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(label(path), func(t *testing.T) {
			f, err := onnx.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			dir, written := split(t, path, n)
			if len(written.Plan.Stages) > 1 {
				several++
			}
			full := w.Check(path, true) == nil
			for _, s := range written.Chain.Stages {
				if err := w.Check(filepath.Join(dir, s.File), full); err != nil && (full || w.Check(path, false) == nil) {
					t.Errorf("%s, full check %t: %v", s.File, full, err)
				}
			}
			in := sample(t, f.Model.Graph)
			for name, run := range map[string]runner{"engine": embedded, "ONNX Runtime": unoptimised(lib)} {
				want, err := run(t.Context(), path, in)
				if err != nil {
					t.Logf("%s does not run the whole: %v", name, err)
					continue
				}
				got, err := follow(t.Context(), dir, written.Chain, in, run)
				if err == nil {
					err = same(got, want)
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	return several
}

func TestFixturesInStages(t *testing.T) {
	if n := chains(t, conform.Fixtures(t), 8); n < 25 {
		t.Errorf("%d models were cut", n)
	}
}

func TestRealModelsInStages(t *testing.T) {
	if n := chains(t, conform.QuickModels(t), 4); n < 35 {
		t.Errorf("%d models were cut", n)
	}
}
