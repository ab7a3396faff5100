package job_test

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/sparse"
)

// A report on two files has the errors and the sparsity of weights that constant expressions compute, which are
// those of the run that wrote the second one.
func TestAComparisonMeasuresWhatTheRunMeasured(t *testing.T) {
	in := take(t, "mlp.onnx")
	pruned := options(in, step(t, prune.L1{}.Method(), "-amount=0.9"))
	pruned.Output = filepath.Join(filepath.Dir(in), "pruned.onnx")
	run(t, pruned)
	for _, m := range []*pass.Method{
		quantize.WeightInt8{}.Method(), quantize.Palette{}.Method(), quantize.Float8{}.Method(),
		sparse.COO{}.Method(), sparse.CSR{}.Method(), sparse.Bitmask{}.Method(), sparse.Delta{}.Method(),
	} {
		t.Run(m.Name, func(t *testing.T) {
			o := options(pruned.Output, step(t, m))
			o.Output = filepath.Join(filepath.Dir(in), m.Name+".onnx")
			o.Errors = true
			own := run(t, o).Report
			c, err := job.Compare(t.Context(), job.Options{Input: o.Input, Output: o.Output, Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			if a, b := own.Totals.Sparsity, c.Report.Totals.Sparsity; a == nil || b == nil || *a != *b {
				t.Errorf("sparsity %v, of the run %v", b, a)
			}
			measured := map[string]report.Weight{}
			for _, w := range c.Report.Weights {
				measured[w.Tensor] = w
			}
			changed := 0
			for _, w := range own.Weights {
				got := measured[w.Tensor]
				if !w.Changed {
					continue
				}
				changed++
				if got.Sparsity == nil || *got.Sparsity != *w.Sparsity {
					t.Errorf("%s: sparsity %v, of the run %v", w.Tensor, got.Sparsity, *w.Sparsity)
				}
				if got.Error == nil || got.Error.Exact != w.Error.Exact || !w.Error.Exact && *got.Error.SQNR != *w.Error.SQNR {
					t.Errorf("%s: error %+v, of the run %+v", w.Tensor, got.Error, w.Error)
				}
			}
			if changed == 0 {
				t.Error("no weight changed")
			}
		})
	}
}

// A weight whose expression does not fit into the memory limit has no figures, and the report no other ones.
func TestAComparisonHoldsTheMemoryLimit(t *testing.T) {
	in := take(t, "mlp.onnx")
	o := options(in, step(t, quantize.WeightInt8{}.Method()))
	o.Output = filepath.Join(filepath.Dir(in), "out.onnx")
	run(t, o)
	for limit, want := range map[int64]bool{64 << 10: false, 64 << 20: true} {
		c, err := job.Compare(t.Context(), job.Options{Input: o.Input, Output: o.Output, Workers: 2,
			Limits: memory.Limits{Memory: limit}})
		if err != nil {
			t.Fatal(err)
		}
		measured := false
		for _, w := range c.Report.Weights {
			measured = measured || w.Changed && w.Error != nil
		}
		if measured != want {
			t.Errorf("a limit of %d bytes: errors %t, want %t", limit, measured, want)
		}
	}
}
