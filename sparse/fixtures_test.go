package sparse

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

func fixture(t testing.TB, name string) string {
	t.Helper()
	for _, p := range conform.Fixtures(t) {
		if filepath.Base(p) == name {
			return p
		}
	}
	t.Fatalf("no fixture %s", name)
	return ""
}

// pruned is the model at path with one of 20 elements of each larger weight left.
func pruned(t testing.TB, path string) string {
	t.Helper()
	m := open(t, path)
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if !pass.IsWeight(v.Const) || v.Const.Elems() < 512 || v.Ambiguous {
				continue
			}
			b := payload(t, e, v.Const)
			keep, size := density(.05), int(v.Const.DType.Bits()/8)
			for i := range len(b) / size {
				if !keep(int64(i)) {
					clear(b[i*size:][:size])
				}
			}
			v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(b)})
		}
	}
	return save(t, m, e, filepath.Base(path))
}

// TestEveryFixture prunes each model, stores it sparsely, and compares it with the
// pruned one: in scopes of every kind, in every way a weight may be written.
func TestEveryFixture(t *testing.T) {
	w := conform.Start(t)
	for _, path := range conform.Fixtures(t) {
		for _, m := range []*pass.Method{autoMethod, bitmaskMethod, cooMethod} {
			name := filepath.Base(path)
			t.Run(name+"/"+m.Name, func(t *testing.T) {
				quantized := name == "int4.onnx" || name == "qdq.onnx" // with little left in floats
				if sparsified(t, w, path, m) == 0 && !quantized {
					t.Error("no weight changed")
				}
			})
		}
	}
}

// TestRealModels does the same with models that others have trained.
func TestRealModels(t *testing.T) {
	w := conform.Start(t)
	changed := 0
	for _, path := range conform.RealModels(t) {
		if fileSize(t, path) > 4<<20 {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) { changed += sparsified(t, w, path, autoMethod) })
	}
	if changed < 200 {
		t.Errorf("%d weights changed", changed)
	}
}

// sparsified runs the method over the model at path, pruned, and returns how many
// weights it changed.
func sparsified(t *testing.T, w *conform.Worker, path string, method *pass.Method) int {
	before := pruned(t, path)
	m := open(t, before)
	rows, e := apply(t, m, 2, stepOf(t, method, nil))
	changed := 0
	for _, r := range rows {
		if r.Status == pass.Changed {
			changed++
		}
	}
	after := save(t, m, e, "sparse.onnx")
	if changed == 0 {
		return 0
	}
	if a, b := fileSize(t, before), fileSize(t, after); b >= a {
		t.Errorf("%d B became %d B", a, b)
	}
	if w.Check(before, true) == nil {
		if err := w.Check(after, true); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Run(before, conform.Options{}); err != nil {
		t.Logf("not run: %v", err)
		return changed
	}
	sameOutputs(t, w, before, after, conform.Options{})
	sameOps(t, w, before, after, rows)
	same(t, before, after, rows)
	return changed
}

// sameOps holds the graphs that the runtime makes of both models against each other.
// Raising the opset may change them, so only what forms are made of is looked for.
func sameOps(t *testing.T, w *conform.Worker, before, after string, rows []pass.Row) {
	t.Helper()
	want, err := w.OptimizedOps(before, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.OptimizedOps(after, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"ScatterElements", "ScatterND", "CumSum", "ConstantOfShape", "Mod"} {
		if got[op] > want[op] {
			t.Errorf("%d %s are not folded: %v, dense %v: %v", got[op]-want[op], op, got, want, rows)
		}
	}
	// Within a subgraph, ONNX Runtime writes what it loaded from a Constant node, dense or
	// not, as such a node again.
	delete(want, "Constant")
	delete(got, "Constant")
	if !rebuilt(rows) && !maps.Equal(want, got) {
		t.Errorf("the runtime makes %v of it, of the dense model %v", got, want)
	}
}

// rebuilt reports whether more changed than where weights come from: a raised opset, or
// equal weights that became one, which lets the runtime merge nodes.
func rebuilt(rows []pass.Row) bool {
	return slices.ContainsFunc(rows, func(r pass.Row) bool { return r.Status == pass.Noted || r.SharedWith != "" })
}

// same undoes the forms and compares every weight of the model, scope by scope.
func same(t *testing.T, before, after string, rows []pass.Row) {
	t.Helper()
	m := open(t, after)
	_, e := apply(t, m, 2, stepOf(t, denseMethod, nil))
	back := open(t, save(t, m, e, "back.onnx"))
	have := map[string]*ir.Tensor{}
	for g := range back.Graphs() {
		for _, v := range g.Consts() {
			have[pass.Scope(g)+"|"+v.Name] = v.Const
		}
	}
	changed := map[string]bool{}
	for _, r := range rows {
		changed[r.Scope+"|"+r.Tensor] = r.Status == pass.Changed && r.SharedWith == ""
	}
	for g := range open(t, before).Graphs() {
		for _, v := range g.Consts() {
			key := pass.Scope(g) + "|" + v.Name
			if !changed[key] {
				continue
			}
			if have[key] == nil {
				t.Errorf("%s is gone", key)
				continue
			}
			want := slices.Clone(payload(t, e, v.Const))
			if v.Const.DType.IsFloat() { // sparse forms store zeros by their value
				kernel.PositiveZeros(want, int(v.Const.DType.Bits()/8))
			}
			if got := payload(t, e, have[key]); string(got) != string(want) {
				t.Errorf("%s came back different", key)
			}
		}
	}
}

// TestDenseOfForeignCoordinates turns sparse initializers and Constant nodes that other
// programs wrote into plain weights.
func TestDenseOfForeignCoordinates(t *testing.T) {
	w := conform.Start(t)
	for _, name := range []string{"sparse_constant.onnx", "sparse_initializer.onnx"} {
		path := fixture(t, name)
		m := open(t, path)
		rows, e := apply(t, m, 2, stepOf(t, denseMethod, nil))
		plain := 0
		for _, r := range rows {
			if r.Status == pass.Changed {
				plain++
			}
		}
		if plain != 2 {
			t.Errorf("%s: %d weights changed, want 2: %v", name, plain, rows)
		}
		out := save(t, m, e, name)
		if err := w.Check(out, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sameOutputs(t, w, path, out, conform.Options{})
		again, _ := apply(t, open(t, path), 2, stepOf(t, autoMethod, nil))
		for _, r := range again {
			if r.Status == pass.Changed {
				t.Errorf("%s: %s is sparse already, but became %s", name, r.Tensor, r.Form.Name)
			}
		}
	}
}

// Equal bytes come out at any number of workers, and a second run finds nothing to do.
func TestSameBytesAndNothingLeftToDo(t *testing.T) {
	path := pruned(t, fixture(t, "transformer.onnx"))
	var first string
	for _, workers := range []int{1, 2, 8} {
		m := open(t, path)
		rows, e := apply(t, m, workers, stepOf(t, autoMethod, nil))
		out := save(t, m, e, "sparse.onnx")
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(len(rows)) + string(b)
		if first == "" {
			first = text
		}
		if text != first {
			t.Errorf("other bytes at %d workers", workers)
		}
		again, _ := apply(t, open(t, out), workers, stepOf(t, autoMethod, nil))
		for _, r := range again {
			if r.Status == pass.Changed {
				t.Errorf("%s: changed again: %s", r.Tensor, report.Why(r))
			}
		}
	}
}
