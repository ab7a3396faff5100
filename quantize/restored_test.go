package quantize

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// restoredModel runs v on the model at path, writes the result to out and, to twin, the original with every changed
// weight replaced by the restored one. It returns the number of those weights.
func restoredModel(t *testing.T, v variant, path, out, twin string) int {
	t.Helper()
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	work, dense := opened(t, path).Model, opened(t, path).Model
	res, err := pass.Run(t.Context(), work, eval, pass.Environment{Workers: 2, Precheck: true, Target: v.target(t)},
		[]pass.Options{v.step(t)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range res.Rows {
		if r.Status == pass.Changed {
			named(t, dense, r.Scope, r.Tensor).SetConst(r.Restore(tensors(r.After)))
			n++
		}
	}
	for _, s := range []struct {
		m    *ir.Model
		path string
	}{{work, out}, {dense, twin}} {
		if _, err := onnx.Save(context.Background(), s.m, s.path,
			onnx.SaveOptions{Workers: 2, Memory: 64 << 20, Eval: eval}); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func tensors(ps []pass.Part) []*ir.Tensor {
	ts := make([]*ir.Tensor, len(ps))
	for i, p := range ps {
		ts[i] = p.Tensor
	}
	return ts
}

func named(t *testing.T, m *ir.Model, scope, name string) *ir.Value {
	t.Helper()
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if v.Name == name && pass.Scope(g) == scope {
				return v
			}
		}
	}
	t.Fatalf("no constant %q in scope %q", name, scope)
	return nil
}

// Weight-only methods change the weights and nothing else: the output equals the original's with the restored weights,
// except for the order of sums. Without MatMulNBits, which may quantize activations, that is close to float32's own
// precision.
func TestWeightOnlyOutputsEqualTheRestoredModel(t *testing.T) {
	w := conform.Start(t)
	variants := []variant{{WeightInt8{}.Method(), nil},
		{WeightInt8{}.Method(), []string{"asymmetric", "weight-type=uint8"}}, {Float16{}.Method(), nil}}
	for i, path := range append(conform.Fixtures(t), conform.QuickModels(t)...) {
		for _, v := range conform.Sampled(i, variants) {
			t.Run(v.String()+" "+label(path), func(t *testing.T) {
				dir := t.TempDir()
				out, twin := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")
				if restoredModel(t, v, path, out, twin) == 0 {
					return
				}
				o := conform.Options{Level: "basic", Inputs: recorded(t, path)}
				outputs, err := w.Compare(twin, out, o)
				if err != nil {
					if _, before := w.Run(path, o); before == nil {
						t.Error(err)
					}
					return
				}
				if s := conform.LowestSQNR(outputs); s < 70 {
					t.Errorf("%.1f dB", s)
				}
			})
		}
	}
}

// recorded are the inputs recorded with a model; random ones are no substitute for some models.
func recorded(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "test_data_set_0", "input_?.pb"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// uint8 weights of the symmetric scheme are int8 weights plus 128, and integer products are exact: the outputs are
// bit-identical.
func TestSymmetricOutputsDoNotDependOnTheType(t *testing.T) {
	w := conform.Start(t)
	for _, more := range [][]string{nil, {"reduce-range"}, {"per-tensor"}} {
		for _, name := range []string{"mlp", "batched", "gemm", "transformer", "subgraph_nested"} {
			dir := t.TempDir()
			a, b := filepath.Join(dir, "a.onnx"), filepath.Join(dir, "b.onnx")
			variant{DynamicInt8{}.Method(), more}.apply(t, fixture(name), a)
			variant{DynamicInt8{}.Method(), append([]string{"weight-type=uint8"}, more...)}.apply(t, fixture(name), b)
			outputs, err := w.Compare(a, b, conform.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range outputs {
				if !o.Equal {
					t.Errorf("%s %v: %s differs by type: %.1f dB", name, more, o.Name, float64(o.SQNR))
				}
			}
		}
	}
}
