package prune_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// The model with factors computes what it computes with their product in each weight's
// place, in the engine and in ONNX Runtime, and it is valid. In weights of 16 bits the
// product has few digits, so there is no telling.
func TestFactorsComputeTheirProduct(t *testing.T) {
	w := conform.Start(t)
	compared, paths := 0, models(t, "style_candy", "minilm_l6_v2_vocab3086", "yolox_nano", "basic_pitch", "magika_v3_3",
		"super_resolution")
	for i, path := range paths {
		if i%2 == 0 {
			continue // there are more models than time
		}
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			m, rows, eval := changed(t, path, prune.LowRank{}.Method(), "amount", "0.6")
			enough := digits(rows)
			if enough == 0 {
				return
			}
			product := masked(t, path, rows, eval, false)
			if db, ok := decibels(t, product, m); ok {
				compared++
				if db < enough {
					t.Errorf("%.1f dB", db)
				}
			}
			inONNXRuntime(t, w, path, product, m, eval, enough)
		})
	}
	if compared < len(paths)/6 {
		t.Errorf("%d of %d models compared", compared, len(paths))
	}
}

// digits are the decibels that the changed weights have digits for, 0 if none changed.
func digits(rows []pass.Row) float64 {
	db := 0.0
	for _, r := range rows {
		switch {
		case r.Status != pass.Changed:
		case r.Before.DType == ir.BFloat16 || db == 30:
			db = 30
		case r.Before.DType == ir.Float16 || db == 50:
			db = 50
		default:
			db = rounding
		}
	}
	return db
}

// inONNXRuntime saves both models and checks that b is valid where the source is, and equal to a.
func inONNXRuntime(t *testing.T, w *conform.Worker, source string, a, b *ir.Model, eval *ir.Eval, enough float64) {
	t.Helper()
	dir := t.TempDir()
	pathA, pathB := filepath.Join(dir, "a.onnx"), filepath.Join(dir, "b.onnx")
	for path, m := range map[string]*ir.Model{pathA: a, pathB: b} {
		if _, err := onnx.Save(context.Background(), m, path, onnx.SaveOptions{Workers: 2, Memory: 64 << 20,
			Eval: eval}); err != nil {
			t.Fatal(err)
		}
	}
	if w.Check(source, true) == nil {
		if err := w.Check(pathB, true); err != nil {
			t.Errorf("not valid any more: %v", err)
		}
	}
	if _, err := w.Run(pathA, conform.Options{Random: true}); err != nil {
		return
	}
	outs, err := w.Compare(pathA, pathB, conform.Options{Random: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outs {
		if float64(o.SQNR) < enough && o.MaxErr > steps {
			t.Errorf("%s: %.1f dB in ONNX Runtime", o.Name, o.SQNR)
		}
	}
}
