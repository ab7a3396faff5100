package layerwise

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

func open(t *testing.T, name string) *ir.Model {
	t.Helper()
	f, err := onnx.Open(filepath.Join("..", "..", "..", "fixtures", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Model
}

// inputs are a few random samples for m.
func inputs(t *testing.T, m *ir.Model) []map[string]*ir.Array {
	t.Helper()
	set, err := dataset.Generate(dataset.Inputs(m.Graph), dataset.Random{Samples: 3, Ranges: dataset.Ranges(m)})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var samples []map[string]*ir.Array
	for b, err := range set.Batches(context.Background(), dataset.Order{}) {
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, b.Inputs)
	}
	return samples
}

// plain runs nodes without fusions: fusions round differently, and differ between a part and the whole model.
var plain = engine.Options{Workers: 2, NoFusion: true}

func walk(t *testing.T, m *ir.Model, samples []map[string]*ir.Array) *Walk {
	t.Helper()
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	w, err := New(m, eval, plain)
	if err != nil {
		t.Fatal(err)
	}
	add(t, w, samples)
	return w
}

func add(t *testing.T, w *Walk, samples []map[string]*ir.Array) {
	t.Helper()
	for _, s := range samples {
		if err := w.Add(s); err != nil {
			t.Fatal(err)
		}
	}
}

// to returns copies of v of all samples.
func (w *Walk) to(v *ir.Value) (got []*ir.Array, err error) {
	return got, w.To(context.Background(), v, func(a *ir.Array) error {
		got = append(got, a.Clone())
		return nil
	})
}

// whole runs the whole model and returns all values of each sample.
func whole(t *testing.T, m *ir.Model, samples []map[string]*ir.Array, names []string) []map[string]*ir.Array {
	t.Helper()
	o := plain
	o.KeepAll = true
	e, err := engine.Open(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var out []map[string]*ir.Array
	for _, s := range samples {
		got, err := e.Run(context.Background(), s, names)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got)
	}
	return out
}

func same(a, b *ir.Array) bool {
	return a != nil && b != nil && a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && bytes.Equal(a.Data, b.Data)
}

// Running layer by layer is bit-identical to running the whole model, with activations in memory or on disk.
func TestLayerByLayerEqualsWholeModel(t *testing.T) {
	for _, name := range []string{"mlp.onnx", "cnn.onnx", "transformer.onnx", "recurrent.onnx", "function.onnx",
		"shared.onnx", "unsorted.onnx", "duplicated.onnx",
		"subgraph_if_outer.onnx", "subgraph_loop_outer.onnx", "subgraph_scan_outer.onnx", "subgraph_nested.onnx",
		"sparse_constant.onnx", "overridable.onnx"} {
		t.Run(name, func(t *testing.T) {
			m := open(t, name)
			samples := inputs(t, m)
			var stops []*ir.Value
			names := []string{}
			for n := range m.Graph.Nodes() {
				if v := n.Outputs[0]; v != nil && !v.Ambiguous {
					stops, names = append(stops, v), append(names, v.Name)
				}
			}
			want := whole(t, m, samples, names)
			for _, free := range []int64{0, 2 << 10, inMemory} {
				w := walk(t, m, nil)
				w.store.free = free
				add(t, w, samples)
				slices.SortFunc(stops, w.Compare)
				for _, v := range stops {
					got, err := w.to(v)
					if err != nil || len(got) != len(samples) {
						t.Fatalf("%s: %d values: %v", v.Name, len(got), err)
					}
					for i, a := range got {
						if !same(a, want[i][v.Name]) {
							t.Errorf("%s of sample %d differs", v.Name, i)
						}
					}
				}
				finish(t, w, m, samples)
			}
		})
	}
}

// finish compares the outputs with those of the whole model.
func finish(t *testing.T, w *Walk, m *ir.Model, samples []map[string]*ir.Array) {
	t.Helper()
	want, i := whole(t, m, samples, nil), 0
	err := w.Finish(context.Background(), func(got map[string]*ir.Array) error {
		for name, a := range want[i] {
			if !same(got[name], a) {
				t.Errorf("output %s of sample %d differs", name, i)
			}
		}
		i++
		return nil
	})
	if err != nil || i != len(samples) {
		t.Fatalf("%d samples: %v", i, err)
	}
}

// Nodes after a replaced weight read the replacement, also through views before all nodes.
func TestReplace(t *testing.T) {
	for _, views := range [][]string{nil, {"Identity"}, {"Transpose", "Transpose"}, {"Identity", "Identity", "Identity"}} {
		m := open(t, "transformer.onnx")
		samples := inputs(t, m)
		var first *ir.Node
		for n := range m.Graph.Nodes() {
			if n.Op.Type == "MatMul" && n.Input(1).Const != nil {
				first = n
				break
			}
		}
		weight := first.Input(1)
		for _, op := range views {
			first.SetInput(1, m.Graph.Insert(m.Graph.First(), op, []*ir.Value{first.Input(1)}))
		}
		if err := m.Graph.Sort(); err != nil {
			t.Fatal(err)
		}
		w := walk(t, m, samples)
		if _, err := w.to(first.Input(0)); err != nil {
			t.Fatal(err)
		}
		zero := &ir.Tensor{Spec: weight.Const.Spec, Source: ir.Mem(make([]byte, weight.Const.Bytes()))}
		w.Replace(weight, zero)
		weight.SetConst(zero)
		finish(t, w, m, samples)
	}
}

// Constant expressions are values like any others, also where they are outputs of the model.
func TestConstantExpressions(t *testing.T) {
	m := open(t, "mlp.onnx")
	weight := m.Graph.Consts()[0]
	a := m.Graph.Insert(m.Graph.First(), "Transpose", []*ir.Value{weight})
	b := m.Graph.Insert(m.Graph.First(), "Neg", []*ir.Value{a})
	for i, v := range []*ir.Value{a, b} {
		v.Name = []string{"a", "b"}[i]
	}
	m.Graph.AddOutput(b)
	if err := m.Graph.Sort(); err != nil {
		t.Fatal(err)
	}
	samples := inputs(t, m)
	want := whole(t, m, samples, []string{"a", "b"})
	w := walk(t, m, samples)
	for _, v := range []*ir.Value{a, b} {
		got, err := w.to(v)
		if err != nil || len(got) != len(samples) || !same(got[0], want[0][v.Name]) {
			t.Errorf("%s: %d values: %v", v.Name, len(got), err)
		}
	}
	finish(t, w, m, samples)
}

// The paths from a constant to its readers double with each operator: a walk along each of them would not end.
func TestConstantExpressionsOfManyPaths(t *testing.T) {
	m := open(t, "mlp.onnx")
	v := m.Graph.Insert(m.Graph.First(), "Neg", []*ir.Value{m.Graph.Consts()[0]})
	last := v
	for range 100 {
		last = m.Graph.Insert(m.Graph.First(), "Max", []*ir.Value{last, last})
	}
	m.Graph.AddOutput(last)
	if err := m.Graph.Sort(); err != nil {
		t.Fatal(err)
	}
	samples := inputs(t, m)
	w := walk(t, m, samples)
	if at := w.lastUse[v]; at != len(w.order) {
		t.Errorf("the last reader of the first expression is %d, want %d, the model's output", at, len(w.order))
	}
	finish(t, w, m, samples)
}

// The file does not grow beyond the activations that are live at a time.
func TestFileOffsetsAreReused(t *testing.T) {
	m := open(t, "transformer.onnx")
	w := walk(t, m, nil)
	w.store.free = 0
	add(t, w, inputs(t, m))
	most := int64(0)
	for n := range m.Graph.Nodes() {
		if _, err := w.to(n.Outputs[0]); err != nil {
			t.Fatal(err)
		}
		now := int64(0)
		for _, s := range w.samples {
			for _, h := range s {
				now += h.Bytes()
			}
		}
		most = max(most, now)
	}
	if w.store.file == nil || w.store.end > 2*most {
		t.Errorf("the file has %d bytes for at most %d live at a time", w.store.end, most)
	}
}

func TestInvalidCalls(t *testing.T) {
	m := open(t, "mlp.onnx")
	if err := walk(t, m, nil).Add(map[string]*ir.Array{}); err == nil {
		t.Error("a sample without inputs is accepted")
	}
	w := walk(t, m, inputs(t, m))
	first := m.Graph.First().Outputs[0]
	if err := w.Finish(context.Background(), func(map[string]*ir.Array) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := w.to(first); err == nil {
		t.Error("a freed value is returned")
	}
}
