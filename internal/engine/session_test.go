package engine_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Outputs are bit-identical for any number of workers, with weights in memory or streamed, and in a second run on the
// same memory.
func TestOutputsAreDeterministic(t *testing.T) {
	for _, path := range everyModel(t) {
		t.Run(modelName(path), func(t *testing.T) {
			want, ok := outputs(t, path, engine.Options{Workers: 1})
			if !ok {
				return
			}
			for name, o := range map[string]engine.Options{
				"3 workers":        {Workers: 3},
				"weights streamed": {Workers: 2, Limits: memory.Limits{Weights: 64 << 10}},
			} {
				got, _ := outputs(t, path, o)
				for k, w := range want {
					if err := (tolerance{}).differ(w, got[k]); err != nil {
						t.Errorf("%s: output %q: %v", name, k, err)
					}
				}
			}
		})
	}
}

// Fused and unfused programs agree up to rounding, which YOLOX amplifies: ONNX Runtime's optimized and plain runs
// differ by 4e-5 of the largest number, and Silu is rounded in other places than its operators. Of integer convolutions
// it is that of quantized activations, each of which may be in the next level.
func TestFusedAgreesWithUnfused(t *testing.T) {
	for _, path := range everyModel(t) {
		t.Run(modelName(path), func(t *testing.T) {
			want, ok := outputs(t, path, engine.Options{Workers: 2, NoFusion: true})
			if !ok {
				return
			}
			got, _ := outputs(t, path, engine.Options{Workers: 2})
			part := cmp.Or(map[string]float64{"yolox_nano": 1e-4, "mobilenetv2_qdq": 0.05}[modelName(path)], 1e-5)
			for k, w := range want {
				if err := within(part, w, got[k]); err != nil {
					t.Errorf("output %q: %v", k, err)
				}
			}
		})
	}
}

// within compares relative to the largest magnitude; 16-bit floats may differ by one unit in the last place. 3e-7 is
// the error of ONNX Runtime's own sigmoid.
func within(part float64, want, got *ir.Array) error {
	switch want.DType {
	case ir.Float16:
		part = max(part, 1.0/1024)
	case ir.BFloat16:
		part = max(part, 1.0/128)
	}
	tol := tolerance{Relative: part, Absolute: 3e-7}
	if want.Kind == ir.Dense {
		for _, x := range numbers(want) {
			if !math.IsInf(x, 0) && !math.IsNaN(x) {
				tol.Absolute = max(tol.Absolute, part*math.Abs(x))
			}
		}
	}
	return tol.differ(want, got)
}

// Every value of a graph can be fetched, and fetching changes no output.
func TestKeptValuesCanBeFetched(t *testing.T) {
	f, e := open(t, filepath.Join("..", "..", "fixtures", "cnn.onnx"), engine.Options{Workers: 2, KeepAll: true})
	batch, err := sample(f.Model.Graph, f.Path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for n := range f.Model.Graph.Nodes() {
		for _, v := range n.Outputs {
			names = append(names, v.Name)
		}
	}
	got, err := e.Run(context.Background(), batch.Inputs, names)
	if err != nil || len(got) != len(names) {
		t.Fatalf("%d of %d values: %v", len(got), len(names), err)
	}
	out := f.Model.Graph.Outputs[0].Name
	want, err := e.Run(context.Background(), batch.Inputs, []string{out})
	if err != nil {
		t.Fatal(err)
	}
	if err := (tolerance{}).differ(want[out], got[out]); err != nil {
		t.Error(err)
	}
}

// Watch passes the values that Run returns, each once, and can end the run.
func TestWatchPassesFetchedValues(t *testing.T) {
	for _, name := range []string{"cnn.onnx", "transformer.onnx"} {
		f, e := open(t, filepath.Join("..", "..", "fixtures", name), engine.Options{Workers: 2, KeepAll: true})
		batch, err := sample(f.Model.Graph, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for n := range f.Model.Graph.Nodes() {
			names = append(names, n.Outputs[0].Name)
		}
		want, err := e.Run(context.Background(), batch.Inputs, names)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		err = e.Watch(context.Background(), batch.Inputs, names, func(name string, a *ir.Array) error {
			seen[name]++
			return (tolerance{}).differ(want[name], a)
		})
		if err != nil {
			t.Error(err)
		}
		for _, v := range names {
			if seen[v] != 1 {
				t.Errorf("%s: %s was seen %d times", name, v, seen[v])
			}
		}
		enough := errors.New("enough")
		if err := e.Watch(context.Background(), batch.Inputs, names,
			func(string, *ir.Array) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("%s: the run ended with %v", name, err)
		}
	}
}

// Live buffers never overlap.
func TestPlansDoNotOverlap(t *testing.T) {
	for _, path := range everyModel(t) {
		t.Run(modelName(path), func(t *testing.T) {
			f, e := tryOpen(t, path, engine.Options{Workers: 2})
			if e == nil {
				return
			}
			batch, err := sample(f.Model.Graph, path)
			if err != nil {
				t.Skip(err)
			}
			specs := map[string]ir.Spec{}
			for name, a := range batch.Inputs {
				specs[name] = a.Spec()
			}
			u, err := e.Usage(specs)
			if err != nil {
				t.Fatal(err)
			}
			if err := u.Plan.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBadInputsAreErrorsOfOneLine(t *testing.T) {
	_, e := open(t, filepath.Join("..", "..", "fixtures", "mlp.onnx"), engine.Options{})
	name := e.Inputs()[0].Name
	for what, in := range map[string]map[string]*ir.Array{
		"is missing":     {},
		"unknown input":  {name: ir.NewArray(ir.Float, 1, 1, 20, 20), "other": ir.NewArray(ir.Float, 1)},
		"declares float": {name: ir.NewArray(ir.Double, 1, 1, 20, 20)},
		"declares rank":  {name: ir.NewArray(ir.Float, 16)},
		"axis 1":         {name: ir.NewArray(ir.Float, 1, 5, 20, 20)},
		"0 bytes":        {name: {DType: ir.Float, Shape: []int64{1, 1, 20, 20}}},
	} {
		_, err := e.Run(context.Background(), in, nil)
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", what, err)
		}
	}
	if _, err := e.Run(context.Background(), map[string]*ir.Array{name: ir.NewArray(ir.Float, 1, 1, 20, 20)},
		[]string{"nowhere"}); err == nil {
		t.Error("an unknown value was fetched")
	}
}

func TestUnsupportedOperatorIsReportedOnOpen(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	n := m.Graph.NewNode(ir.OpID{Type: "NoSuchThing"}, []*ir.Value{x})
	n.Name = "here"
	y := m.Graph.AddValue("y")
	n.SetOutputs(y)
	m.Graph.Append(n)
	m.Graph.AddOutput(y)
	_, err := engine.Open(context.Background(), m, engine.Options{})
	var missing *engine.Unsupported
	if !errors.As(err, &missing) || missing.Node != "here" || missing.Op.Type != "NoSuchThing" {
		t.Errorf("got %v", err)
	}
}

func TestErrorsNameTheModule(t *testing.T) {
	for op, want := range map[string]string{
		"NoSuchThing": `node "here" (NoSuchThing, encoder.dense): operator of opset 17`,
		"MatMul":      `node "here" (MatMul, encoder.dense): `,
	} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		x := m.Graph.AddValue("x")
		x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}, {N: 3}}}
		m.Graph.Inputs = append(m.Graph.Inputs, x)
		n := m.Graph.NewNode(ir.OpID{Type: op}, []*ir.Value{x, x})
		n.Name, n.Module = "here", "encoder.dense"
		y := m.Graph.AddValue("y")
		n.SetOutputs(y)
		m.Graph.Append(n)
		m.Graph.AddOutput(y)
		s, err := engine.Open(context.Background(), m, engine.Options{})
		if err == nil {
			_, err = s.Run(context.Background(), map[string]*ir.Array{"x": ir.ArrayOf(make([]float32, 6), 2, 3)}, nil)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", op, err, want)
		}
	}
}

func TestCancelledRunEnds(t *testing.T) {
	f, e := open(t, filepath.Join("..", "..", "fixtures", "cnn.onnx"), engine.Options{})
	batch, err := sample(f.Model.Graph, f.Path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Run(ctx, batch.Inputs, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// outputs runs the model on its sample; false if the engine does not support it.
func outputs(t *testing.T, path string, o engine.Options) (map[string]*ir.Array, bool) {
	t.Helper()
	f, e := tryOpen(t, path, o)
	if e == nil {
		return nil, false
	}
	batch, err := sample(f.Model.Graph, path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Run(context.Background(), batch.Inputs, nil)
	if err != nil {
		t.Log(err) // TestRealModelsAgreeWithONNXRuntime checks whether it should run
		return nil, false
	}
	again, err := e.Run(context.Background(), batch.Inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, w := range out {
		if err := (tolerance{}).differ(w, again[k]); err != nil {
			t.Errorf("second run: output %q: %v", k, err)
		}
	}
	return out, true
}

func open(t *testing.T, path string, o engine.Options) (*onnx.File, *engine.Interpreter) {
	t.Helper()
	f, e := tryOpen(t, path, o)
	if e == nil {
		t.Fatal("it has an unsupported operator")
	}
	return f, e
}

// tryOpen returns no session for a model with unsupported operators.
func tryOpen(t *testing.T, path string, o engine.Options) (*onnx.File, *engine.Interpreter) {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	e, err := engine.Open(context.Background(), f.Model, o)
	var missing *engine.Unsupported
	if errors.As(err, &missing) {
		t.Log(err)
		return f, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return f, e
}

// everyModel lists the repository's own models and the real ones; with -short, as for the slow kernels in plain Go,
// only the former.
func everyModel(t *testing.T) []string {
	if testing.Short() {
		return conform.Fixtures(t)
	}
	return append(conform.Fixtures(t), conform.QuickModels(t)...)
}

func modelName(path string) string {
	if name := filepath.Base(path); name != "model.onnx" {
		return name
	}
	return filepath.Base(filepath.Dir(path))
}
