package engine_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A model with one changed weight gives bit-identical outputs with and without a baseline session, whichever weight
// changes.
func TestBaselineSessionsAreBitIdentical(t *testing.T) {
	cut := 0
	for _, path := range everyModel(t) {
		if info, err := os.Stat(path); err != nil || info.Size() > 1<<18 {
			continue
		}
		t.Run(modelName(path), func(t *testing.T) {
			f, first := tryOpen(t, path, engine.Options{Workers: 2})
			if first == nil {
				return
			}
			batch, err := sample(f.Model.Graph, path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := first.Run(t.Context(), batch.Inputs, nil); err != nil {
				return
			}
			weights := floats(f.Model)
			for _, at := range slices.Compact([]int{0, len(weights) / 2, len(weights) - 1}) {
				if at >= 0 && at < len(weights) {
					cut += againstBaseline(t, path, at, batch.Inputs)
				}
			}
		})
	}
	if cut == 0 {
		t.Error("no value was reused from any baseline")
	}
}

// floats lists the float weights of m.
func floats(m *ir.Model) []*ir.Value {
	return slices.DeleteFunc(m.Graph.Consts(), func(v *ir.Value) bool {
		return v.Const.DType != ir.Float ||
			v.Const.Elems() < 2
	})
}

// againstBaseline halves weight number at, compares the outputs and returns the number of values that the baseline
// computed.
func againstBaseline(t *testing.T, path string, at int, in map[string]*ir.Array) int {
	t.Helper()
	base, changed := identified(t, path, nil, nil), func(m *ir.Model) { halve(t, floats(m)[at]) }
	own, err := identified(t, path, changed, nil).Run(t.Context(), in, nil)
	if err != nil {
		return 0 // some weights allow few values only
	}
	s := identified(t, path, changed, base)
	all := maps.Clone(in)
	err = base.Watch(t.Context(), in, s.BaselineInputs(), func(name string, a *ir.Array) error {
		all[name] = a.Clone()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := s.BaselineInputs()
	for _, given := range [][]string{nil, names[:len(names)/2]} {
		sameInParts(t, base, all, given, names[len(given):])
	}
	got, err := s.Run(t.Context(), verify.InputsOf(s, all), nil)
	if err != nil {
		t.Fatalf("weight %d: %v", at, err)
	}
	for name, want := range own {
		if err := (tolerance{}).differ(want, got[name]); err != nil {
			t.Errorf("weight %d: output %q: %v", at, name, err)
		}
	}
	return len(s.BaselineInputs())
}

// sameInParts compares values of base with those that a part of it computes from given ones.
func sameInParts(t *testing.T, base *engine.Interpreter, values map[string]*ir.Array, given, fetch []string) {
	t.Helper()
	if len(fetch) == 0 {
		return
	}
	part := base.Part(given, fetch)
	got, err := part.Run(t.Context(), verify.InputsOf(part, values), fetch)
	if err != nil {
		t.Fatalf("from %d values: %v", len(given), err)
	}
	for _, name := range fetch {
		if err := (tolerance{}).differ(values[name], got[name]); err != nil {
			t.Errorf("from %d values: %q: %v", len(given), name, err)
		}
	}
}

// identified opens a changed model whose constants are identified by their order in the file.
func identified(t *testing.T, path string, change func(*ir.Model), baseline *engine.Interpreter) *engine.Interpreter {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	names := map[*ir.Tensor]string{}
	for g := range f.Model.Graphs() {
		for _, v := range g.Consts() {
			names[v.Const] = strconv.Itoa(len(names))
		}
	}
	if change != nil {
		change(f.Model)
	}
	e, err := engine.Open(t.Context(), f.Model, engine.Options{Workers: 2, Baseline: baseline,
		Identity: func(t *ir.Tensor) string { return names[t] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func halve(t *testing.T, v *ir.Value) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	b, err := e.ReadAll(context.Background(), v.Const)
	if err != nil {
		t.Fatal(err)
	}
	a := ir.NewArray(ir.Float, v.Const.Shape...)
	copy(a.Data, b)
	for i, x := range ir.View[float32](a) {
		ir.View[float32](a)[i] = x / 2
	}
	v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(a.Data)})
}
