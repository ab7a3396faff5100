package prune_test

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// changed is the result of a method, still in memory.
func changed(t *testing.T, path string, m *pass.Method, options ...string) (*ir.Model, []pass.Row, *ir.Eval) {
	t.Helper()
	f := open(t, path)
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	step, err := pass.NewStep(m, func(fs *flag.FlagSet) error {
		for i := 0; i < len(options); i += 2 {
			if err := fs.Set(options[i], options[i+1]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := pass.Run(t.Context(), f.Model, eval, pass.Environment{Workers: 2, Precheck: true}, []pass.Options{step})
	if err != nil {
		t.Fatal(err)
	}
	return f.Model, res.Rows, eval
}

// products are the operators whose weights make channels and consume them.
var products = []string{"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "Attention"}

// masked is the model at path with the weights of products as the rows restore them: pruned
// channels are zero. A channel without consumer may have any values, so the changed model has to equal this one.
// all restores other constants too, but for divisors.
func masked(t *testing.T, path string, rows []pass.Row, eval *ir.Eval, all bool) *ir.Model {
	t.Helper()
	m := open(t, path).Model
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			for _, r := range rows {
				if r.Status != pass.Changed || r.Tensor != v.Name || r.Scope != pass.Scope(g) || !restored(v, all) {
					continue
				}
				parts := make([]*ir.Tensor, len(r.After))
				for i, p := range r.After {
					parts[i] = p.Tensor
				}
				b, err := eval.ReadAll(context.Background(), r.Restore(parts))
				if err != nil {
					t.Fatal(err)
				}
				v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(b)})
			}
		}
	}
	return m
}

func restored(v *ir.Value, all bool) bool {
	return slices.ContainsFunc(pass.Consumers(v), func(n *ir.Node) bool {
		return slices.Contains(products, n.Op.Type) || all && n.Op.Type == "Add"
	})
}

// decibels is how far the outputs of b are from those of a at worst; ok is false where the
// engine does not run a.
func decibels(t *testing.T, a, b *ir.Model) (db float64, ok bool) {
	t.Helper()
	ctx := context.Background()
	x, err := engine.Open(ctx, a, engine.Options{Workers: 2})
	if err != nil {
		return 0, false
	}
	defer x.Close()
	set, err := dataset.Generate(dataset.Inputs(a.Graph), dataset.Random{Samples: 2, Ranges: dataset.Ranges(a)})
	if err != nil {
		return 0, false
	}
	defer set.Close()
	y, err := engine.Open(ctx, b, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	r, err := verify.Compare(ctx, x, y, set, verify.Options{})
	if e := (*verify.SideError)(nil); errors.As(err, &e) && e.Side == verify.First {
		return 0, false
	}
	if err != nil {
		t.Fatal(err)
	}
	worst := r.Worst()
	if worst == nil || worst.Errors == nil {
		return 0, false
	}
	return worst.Errors.DB(), true
}

// rounding is the least SQNR, in decibels, of outputs that differ by the order of sums.
const rounding = 80

// steps is what outputs close to zero may differ by: ONNX Runtime's Sigmoid has steps of 6e-8.
const steps = 5e-7

// models are the fixtures and the real models but for those that take too long, which with -short all of them do.
func models(t *testing.T, slow ...string) []string {
	t.Helper()
	if testing.Short() {
		return conform.Fixtures(t)
	}
	return append(conform.Fixtures(t), realModels(t, slow...)...)
}

func realModels(t *testing.T, slow ...string) []string {
	t.Helper()
	return slices.DeleteFunc(conform.RealModels(t), func(path string) bool {
		return slices.Contains(slow, filepath.Base(filepath.Dir(path)))
	})
}

// The model with fewer channels computes the outputs of the whole one without the pruned
// channels, in the engine and in ONNX Runtime, and it is valid with full shape inference:
// on every fixture and every real model.
func TestPrunedChannelsHaveNoConsumers(t *testing.T) {
	w := conform.Start(t)
	compared, paths := 0, models(t, "style_candy", "basic_pitch")
	for i, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			options := [][]string{nil, {"amount", "0.3", "round", "2"}}[i%2]
			m, rows, eval := changed(t, path, prune.Channel{}.Method(), options...)
			if changedRows(rows) == 0 {
				return
			}
			source := masked(t, path, rows, eval, false)
			if db, ok := decibels(t, source, m); ok {
				compared++
				if db < rounding {
					t.Errorf("%.1f dB", db)
				}
			}
			inONNXRuntime(t, w, path, source, m, eval, rounding)
		})
	}
	if compared < len(paths)/3 {
		t.Errorf("%d of %d models compared", compared, len(paths))
	}
}
