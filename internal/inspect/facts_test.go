package inspect

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/inspection"
)

func open(t *testing.T, path string) *onnx.File {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func facts(t *testing.T, f *onnx.File, o Options) *inspection.Model {
	t.Helper()
	got, err := Model(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Every fixture is read in full; types and tensors add up, and workers change nothing.
func TestFixtures(t *testing.T) {
	for _, path := range conform.Fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := open(t, path)
			got := facts(t, f, Options{Workers: 2, Values: true})
			tensors, types := int64(0), int64(0)
			for _, x := range got.Tensors {
				tensors += x.Bytes
			}
			for _, d := range got.DTypes {
				types += d.Bytes
			}
			if tensors != types {
				t.Errorf("tensors have %d bytes, types %d", tensors, types)
			}
			one := facts(t, f, Options{Workers: 1, Values: true})
			if !slices.EqualFunc(got.Tensors, one.Tensors, equal) {
				t.Errorf("two workers return %v, one returns %v", got.Tensors, one.Tensors)
			}
		})
	}
}

func equal(a, b inspection.Tensor) bool {
	if (a.Sparsity == nil) != (b.Sparsity == nil) {
		return false
	}
	return a.Name == b.Name && a.DuplicateOf == b.DuplicateOf && (a.Sparsity == nil || *a.Sparsity == *b.Sparsity)
}

func TestDuplicatesNameTheFirst(t *testing.T) {
	got := facts(t, open(t, "../../fixtures/duplicated.onnx"), Options{Workers: 1})
	of := map[string]string{}
	for _, x := range got.Tensors {
		of[x.Name] = x.DuplicateOf
		if x.Sparsity != nil {
			t.Errorf("%s: zeros were counted without a request", x.Name)
		}
	}
	if of["w_first"] != "" || of["w_second"] != "w_first" || of["w_turned"] != "" {
		t.Errorf("duplicates are %v", of)
	}
}

// -0.0 is a zero, and so is every integer and float whose bits are.
func TestSparsity(t *testing.T) {
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	for _, c := range []struct {
		dt   ir.DType
		data ir.Mem
		n    int64
		want float64 // negative for nothing
	}{
		{ir.Float, ir.Mem{0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 128, 63, 0, 0, 0, 0}, 4, 0.75},
		{ir.Float16, ir.Mem{0, 0, 0, 128, 1, 0}, 3, 0.666667},
		{ir.Int8, ir.Mem{0, 1, 0, 0}, 4, 0.75},
		{ir.Double, make(ir.Mem, 16), 2, 1},
		{ir.Int4, ir.Mem{0}, 2, -1},
		{ir.Complex128, make(ir.Mem, 16), 1, -1},
		{ir.Float, ir.Mem{}, 0, -1},
	} {
		got, err := sparsity(t.Context(), e, &ir.Tensor{Spec: ir.Spec{DType: c.dt, Shape: []int64{c.n}}, Source: c.data})
		if err != nil {
			t.Fatal(err)
		}
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %g", c.dt, got, c.want)
		}
	}
}

// A payload larger than the buffer is counted in full.
func TestSparsityOfSeveralBuffers(t *testing.T) {
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	data := make(ir.Mem, 2*ir.CopyBuffer+8)
	data[0], data[ir.CopyBuffer], data[len(data)-1] = 1, 1, 1
	n := int64(len(data) / 4)
	got, err := sparsity(t.Context(), e, &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{n}}, Source: data})
	if err != nil || got == nil {
		t.Fatal(got, err)
	}
	if want := 0.999994; *got != want {
		t.Errorf("%g, want %g", *got, want)
	}
}
