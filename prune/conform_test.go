package prune_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// Real models are opened, pruned and saved. The output is valid where the input is,
// runs where it runs, is not larger, and, except with sparsegpt, holds each element as it was or as +0.

var methods = []*pass.Method{prune.L1{}.Method(), prune.L1Global{}.Method(), prune.L1Block{}.Method(),
	prune.L2{}.Method(), prune.Random{}.Method(), prune.NM{}.Method(), prune.Wanda{}.Method(), prune.SparseGPT{}.Method()}

func TestFixturesThroughEveryMethod(t *testing.T) {
	paths := conform.Fixtures(t)
	changed := 0
	for _, path := range paths {
		for _, m := range methods {
			t.Run(filepath.Base(path)+" "+m.Name, func(t *testing.T) { changed += through(t, path, m) })
		}
	}
	if changed < 2*len(paths) {
		t.Errorf("%d weights of %d models changed", changed, len(paths))
	}
}

// Every shared model takes the methods in turn: there are more models than time.
func TestSharedModelsThroughMethodsInTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("many models: left to runs without -short")
	}
	paths := realModels(t, "style_candy")
	changed := 0
	for i, path := range paths {
		m := methods[i%len(methods)]
		t.Run(filepath.Base(filepath.Dir(path))+" "+m.Name, func(t *testing.T) { changed += through(t, path, m) })
	}
	if changed < 5*len(paths) {
		t.Errorf("%d weights of %d models changed", changed, len(paths))
	}
}

// through returns how many weights the method changed.
func through(t *testing.T, path string, m *pass.Method) int {
	w := conform.Start(t)
	out := filepath.Join(t.TempDir(), "out.onnx")
	rows, err := pruned(t, path, out, m, false)
	if u := (*pass.Unfit)(nil); errors.As(err, &u) {
		rows, err = pruned(t, path, out, m, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.Check(path, true) == nil {
		if err := w.Check(out, true); err != nil {
			t.Errorf("not valid any more: %v", err)
		}
	}
	if _, err := w.Run(path, conform.Options{}); err == nil {
		if _, err := w.Compare(path, out, conform.Options{}); err != nil {
			t.Errorf("does not run any more: %v", err)
		}
	}
	return changedRows(rows)
}

func pruned(t *testing.T, path, out string, m *pass.Method, precheck bool) ([]pass.Row, error) {
	f := open(t, path)
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	step, err := pass.NewStep(m, func(*flag.FlagSet) error { return nil })
	if err != nil {
		return nil, err
	}
	before := payloads(t, f.Model)
	res, err := pass.Run(t.Context(), f.Model, eval, pass.Environment{Workers: 2, Precheck: precheck},
		[]pass.Options{step})
	if err != nil {
		return nil, err
	}
	o := onnx.SaveOptions{Workers: 2, Memory: 64 << 20, Eval: eval}
	if _, err := onnx.Save(t.Context(), f.Model, out, o); err != nil {
		return nil, err
	}
	after := open(t, out)
	var named int64 // bytes of the list of pruned weights
	for _, e := range after.Model.Meta {
		if e.Key == pass.KeyPruned {
			named = int64(len(e.Key)+len(e.Value)) + 16 // of protobuf's fields
		}
	}
	if !f.External() && after.Size() > f.Size()+named {
		t.Errorf("grew from %d to %d bytes, of which %d name the pruned weights", f.Size(), after.Size(), named)
	}
	left := payloads(t, after.Model)
	if len(left) != len(before) {
		t.Fatalf("%d weights became %d", len(before), len(left))
	}
	for name, p := range before {
		if m.Name != (prune.SparseGPT{}).Method().Name { // which changes the other elements
			onlyZeroed(t, name, p, left[name])
		}
	}
	return res.Rows, nil
}

func open(t *testing.T, path string) *onnx.File {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A payload is a weight read in full.
type payload struct {
	*ir.Tensor
	b []byte
}

// payloads are a model's weights by scope and name.
func payloads(t *testing.T, m *ir.Model) map[string]payload {
	t.Helper()
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	ps := map[string]payload{}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if !pass.IsWeight(v.Const) {
				continue
			}
			b, err := eval.ReadAll(context.Background(), v.Const)
			if err != nil {
				t.Fatal(err)
			}
			ps[pass.Scope(g)+":"+v.Name] = payload{v.Const, b}
		}
	}
	return ps
}

func onlyZeroed(t *testing.T, name string, before, after payload) {
	t.Helper()
	if after.Tensor == nil {
		t.Errorf("%s is lost", name)
		return
	}
	if before.Spec.String() != after.Spec.String() {
		t.Errorf("%s: %s became %s", name, before.Spec, after.Spec)
		return
	}
	size := int(before.DType.Bits() / 8)
	zero := make([]byte, size)
	for i := 0; i < len(before.b); i += size {
		got := after.b[i : i+size]
		if !bytes.Equal(got, zero) && !bytes.Equal(got, before.b[i:i+size]) {
			t.Fatalf("%s: element %d became %x", name, i/size, got)
		}
	}
}

func changedRows(rows []pass.Row) int {
	return len(slices.DeleteFunc(slices.Clone(rows), func(r pass.Row) bool { return r.Status != pass.Changed }))
}

// A trained network keeps its accuracy when little is pruned, and the smallest weights are
// a better choice than random ones.
func TestSmallWeightsMatterLess(t *testing.T) {
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	w := conform.Start(t)
	accuracy := map[*pass.Method]float64{}
	for _, m := range []*pass.Method{prune.L1{}.Method(), prune.L1Global{}.Method(), prune.Random{}.Method()} {
		out := filepath.Join(t.TempDir(), "mlp.onnx")
		if _, err := pruned(t, filepath.Join(root, "fixtures", "mlp.onnx"), out, m, false); err != nil {
			t.Fatal(err)
		}
		if accuracy[m], err = w.Accuracy(out, filepath.Join(root, "fixtures", "digits_test.npz"), "labels",
			conform.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if accuracy[prune.L1{}.Method()] < 0.95 || accuracy[prune.L1Global{}.Method()] < 0.95 ||
		accuracy[prune.Random{}.Method()] > accuracy[prune.L1{}.Method()] {
		t.Errorf("accuracies with half of the weights: l1 %v, l1-global %v, random %v", accuracy[prune.L1{}.Method()],
			accuracy[prune.L1Global{}.Method()], accuracy[prune.Random{}.Method()])
	}
}

func TestOutputIsTheSameForAnyWorkersAndMemory(t *testing.T) {
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, workers := range []int{1, 2, 8} {
		f := open(t, filepath.Join(root, "fixtures", "transformer.onnx"))
		eval := ir.NewEval(t.TempDir())
		defer eval.Close()
		var steps []pass.Options
		for _, m := range methods {
			s, err := pass.NewStep(m, func(fs *flag.FlagSet) error {
				if fs.Lookup("embeddings") == nil {
					return nil
				}
				return fs.Set("embeddings", "true")
			})
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, s)
		}
		if _, err := pass.Run(t.Context(), f.Model, eval, pass.Environment{Workers: workers}, steps); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.onnx")
		o := onnx.SaveOptions{Workers: workers, Memory: int64(workers) << 21, Eval: eval}
		if _, err := onnx.Save(t.Context(), f.Model, out, o); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Errorf("%d workers write other bytes", workers)
		}
	}
}
