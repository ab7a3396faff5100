package engine_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// The same bits come out at any number of workers, from weights in memory or read for each run, and in
// a second run on the same memory.
func TestResultsDoNotDependOnHowTheyAreComputed(t *testing.T) {
	for _, path := range everyModel(t) {
		t.Run(modelName(path), func(t *testing.T) {
			want, ok := outputs(t, path, engine.Options{Workers: 1})
			if !ok {
				return
			}
			for name, o := range map[string]engine.Options{
				"3 workers":        {Workers: 3},
				"weights streamed": {Workers: 2, MemoryLimit: 128 << 10},
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

// Fusions keep what single nodes compute, up to rounding.
func TestFusionsAgreeWithPlainNodes(t *testing.T) {
	for _, path := range everyModel(t) {
		t.Run(modelName(path), func(t *testing.T) {
			want, ok := outputs(t, path, engine.Options{Workers: 2, Plain: true})
			if !ok {
				return
			}
			got, _ := outputs(t, path, engine.Options{Workers: 2})
			for k, w := range want {
				if err := within(1e-5, w, got[k]); err != nil {
					t.Errorf("output %q: %v", k, err)
				}
			}
		})
	}
}

// within compares with a part of the largest magnitude; 16-bit floats may round to their neighbour.
// Below 3e-7 lies what ONNX Runtime's own sigmoid is off by.
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

// Who watches values sees what Run returns of them, each once, and may end the run.
func TestWatchedValuesAreThoseThatAreFetched(t *testing.T) {
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
		if err := e.Watch(context.Background(), batch.Inputs, names, func(string, *ir.Array) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("%s: the run ended with %v", name, err)
		}
	}
}

// Plans are sound: nothing that is alive at the same time overlaps.
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
		"has no input":   {name: ir.NewArray(ir.Float, 1, 1, 20, 20), "other": ir.NewArray(ir.Float, 1)},
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
	if _, err := e.Run(context.Background(), map[string]*ir.Array{name: ir.NewArray(ir.Float, 1, 1, 20, 20)}, []string{"nowhere"}); err == nil {
		t.Error("a value that there is not can be fetched")
	}
}

func TestMissingOperatorIsSaidBeforeAnythingRuns(t *testing.T) {
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
	var missing *engine.Missing
	if !errors.As(err, &missing) || missing.Node != "here" || missing.Op.Type != "NoSuchThing" {
		t.Errorf("got %v", err)
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

// outputs runs the model on its sample; false if the engine does not run it.
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
		t.Log(err) // TestRealModelsAgreeWithONNXRuntime says whether it should run
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
		t.Fatal("it has an operator that is missing")
	}
	return f, e
}

// tryOpen gives no session for a model with operators that the engine does not run.
func tryOpen(t *testing.T, path string, o engine.Options) (*onnx.File, *engine.Interpreter) {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	e, err := engine.Open(context.Background(), f.Model, o)
	var missing *engine.Missing
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

// slow is a model whose images take as long as all others do. Only the test beside ONNX Runtime runs it.
const slow = "style_candy"

// everyModel is the repository's own models and the real ones; with -short, which the slow plain Go kernels are
// tested with, the former only.
func everyModel(t *testing.T) []string {
	if testing.Short() {
		return conform.Fixtures(t)
	}
	return append(conform.Fixtures(t), realModels(t)...)
}

func realModels(t *testing.T) []string {
	return slices.DeleteFunc(conform.RealModels(t), func(path string) bool { return modelName(path) == slow })
}

func modelName(path string) string {
	if name := filepath.Base(path); name != "model.onnx" {
		return name
	}
	return filepath.Base(filepath.Dir(path))
}
