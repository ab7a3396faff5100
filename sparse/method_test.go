package sparse

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// megaWeight is a normal 1024x1024 weight with nine of ten elements zero.
func megaWeight() weight {
	rng := rand.New(rand.NewPCG(7, 7))
	s := ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{1024, 1024}}
	data := make([]byte, s.Bytes())
	for i := range s.Elems() {
		x := float32(rng.NormFloat64())
		if rng.Float64() < .1 {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(x))
		}
	}
	return weight{"w", s, data}
}

// TestAutoOfNinetyPercentZeros is the goal that the forms are held to: 0.49 MB of 4 MiB.
func TestAutoOfNinetyPercentZeros(t *testing.T) {
	w := conform.Start(t)
	for _, version := range []int64{11, 13, 21} {
		m := modelOf(version, megaWeight())
		before := save(t, m, ir.NewEval(""), "dense.onnx")
		rows, e := apply(t, m, 2, stepOf(t, autoMethod, nil))
		after := save(t, m, e, "sparse.onnx")
		if n := fileSize(t, after); n > 490_000 {
			t.Errorf("opset %d: %d B", version, n)
		}
		r := rowOf(t, rows, "w")
		for _, want := range []string{"90.0 % zeros: delta4 48", "bitmask 55", "csr 6", "coo 83", "dense 4,194,3"} {
			if !strings.Contains(report.Why(r), want) {
				t.Errorf("opset %d: %q does not say %q", version, report.Why(r), want)
			}
		}
		sameOutputs(t, w, before, after, conform.Options{})
		undone(t, before, after)
	}
}

// Sizes in rows are upper bounds of what the file gains, and close ones.
func TestArithmeticIsThatOfTheFile(t *testing.T) {
	for _, method := range formMethods() {
		m := modelOf(21, random("w", ir.Float, []int64{256, 320}, blocks(320, .03)))
		before := fileSize(t, save(t, m, ir.NewEval(""), "dense.onnx"))
		d := &decider{step: &pass.Step{}, forms: []sizer{sizers[method.Name]}}
		e := ir.NewEval("")
		ms, err := measure(context.Background(), e, weightNamed(t, m, "w"), 0, Block{Rows: 16, Cols: 16})
		if err != nil {
			t.Fatal(err)
		}
		l, reason := d.forms[0](ms, 21)
		if reason != "" {
			t.Fatal(reason)
		}
		want := denseCost(ms.Spec, "w") - cost(l, m.Graph.Consts()[0])
		_, e = apply(t, m, 1, stepOf(t, method, nil))
		got := before - fileSize(t, save(t, m, e, "sparse.onnx"))
		if got < want || got > want+250 {
			t.Errorf("%s: the file shrank by %d B, %d were promised", l.label(), got, want)
		}
	}
}

// sizers are the forms by the names of their methods.
var sizers = map[string]sizer{"coo": newCOO, "csr": newCSR, "bsr": newBSR, "bitmask": newBitmask, "delta": newDelta}

// formMethods are the methods that store weights in one form.
func formMethods() []*pass.Method {
	return slices.DeleteFunc(Methods(), func(m *pass.Method) bool { return m.Stage != pass.Sparsify || m == autoMethod })
}

func TestEveryFormIsTested(t *testing.T) {
	for _, m := range formMethods() {
		if sizers[m.Name] == nil {
			t.Errorf("sizers has no form of %s: add it", m.Name)
		}
		if !slices.ContainsFunc(runtimeForms, func(f runtimeForm) bool { return f.method == m }) {
			t.Errorf("runtimeForms has no row for %s: add one with its lowest opset", m.Name)
		}
	}
	if len(finders) != len(formMethods()) {
		t.Errorf("there are %d finders for %d forms: add a finder, so that dense restores weights of the form", len(finders),
			len(formMethods()))
	}
}

// TestWhatStaysDense requires a row with the reason for each weight.
func TestWhatStaysDense(t *testing.T) {
	everything := func(int64) bool { return true }
	m := modelOf(13,
		random("full", ir.Float, []int64{64, 64}, everything),
		random("tiny", ir.Float, []int64{4}, only(1)),
		random("odd", ir.Float, []int64{50, 50}, density(.1)),
		random("out", ir.Float, []int64{64, 64}, density(.01)),
		random("in", ir.Float, []int64{64, 64}, density(.01)),
		random("twice", ir.Float, []int64{64, 64}, density(.01)),
		random("skipped", ir.Float, []int64{64, 64}, density(.01)),
	)
	values := map[string]*ir.Value{}
	for _, v := range m.Graph.Consts() {
		values[v.Name] = v
	}
	m.Graph.AddOutput(values["out"])
	m.Graph.Inputs = append(m.Graph.Inputs, values["in"])
	values["twice"].Ambiguous = true
	m.Graph.AddConst("unread", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{900}},
		Source: ir.Mem(make([]byte, 3600))})
	rows, _ := apply(t, m, 2, stepOf(t, bsrMethod, options{"skip": "skipped"}))
	for name, want := range map[string]string{
		"full":    "0.0 % zeros: dense 16,404 B; bsr16x16 16,",
		"tiny":    "75.0 % zeros: dense 30 B; bsr16x16 1,6",
		"odd":     "dense 10,017 B; bsr16x16 1",
		"out":     "graph output",
		"in":      "graph input, replaceable by callers",
		"twice":   "two values have its name",
		"unread":  "not used by any node",
		"skipped": "excluded by --skip",
	} {
		if r := rowOf(t, rows, name); r.Status != pass.Skipped || !strings.Contains(report.Why(r), want) {
			t.Errorf("%s: %s: %q, want %q", name, r.Status, report.Why(r), want)
		}
	}
}

// TestCodesWithAZeroPoint stores uint8 codes whose zeros are 128.
func TestCodesWithAZeroPoint(t *testing.T) {
	w := conform.Start(t)
	for _, method := range []*pass.Method{cooMethod, csrMethod, bsrMethod, bitmaskMethod, deltaMethod} {
		x := random("w", ir.Uint8, []int64{128, 128}, blocks(128, .02))
		for i := range x.data {
			x.data[i] += 128
		}
		m := modelOf(16, x)
		before := save(t, m, ir.NewEval(""), "dense.onnx")
		rows, e := apply(t, m, 2, stepOf(t, method, nil))
		if r := rowOf(t, rows, "w"); r.Status != pass.Changed || !strings.Contains(report.Why(r), "% equal to 128") {
			t.Errorf("%s: %s: %s", method.Name, r.Status, report.Why(r))
		}
		after := save(t, m, e, "sparse.onnx")
		if err := w.Check(after, true); err != nil {
			t.Error(err)
		}
		sameOutputs(t, w, before, after, conform.Options{})
		undone(t, before, after)
	}
}

// TestRestore makes the weights from what was stored, as reports do.
func TestRestore(t *testing.T) {
	for _, method := range formMethods() {
		x := random("w", ir.Float, []int64{96, 80}, blocks(80, .03))
		rows, e := apply(t, modelOf(21, x), 2, stepOf(t, method, nil))
		r := rowOf(t, rows, "w")
		var parts []*ir.Tensor
		roles := ""
		for _, p := range r.After {
			parts = append(parts, p.Tensor)
			roles += string(p.Role) + " "
			if p.Value == nil {
				t.Errorf("%s: part %s has no value", method.Name, p.Role)
			}
		}
		if !strings.HasPrefix(roles, "payload indices ") {
			t.Errorf("%s: parts are %s", method.Name, roles)
		}
		got := r.Restore(parts)
		if got.Name != "w" || got.String() != x.String() || !bytes.Equal(payload(t, e, got), x.data) {
			t.Errorf("%s: restored %s %s", method.Name, got.Name, got)
		}
	}
}

// TestRaisesTheOpset only as far as the form needs, and reports it.
func TestRaisesTheOpset(t *testing.T) {
	w := conform.Start(t)
	for _, c := range []struct {
		method   *pass.Method
		from, to int64
		dt       ir.DType
	}{
		{deltaMethod, 9, 11, ir.Float}, {autoMethod, 10, 11, ir.Float}, {csrMethod, 13, 16, ir.Float},
		{bitmaskMethod, 13, 13, ir.Float},
		{deltaMethod, 13, 20, ir.BFloat16}, {autoMethod, 13, 13, ir.Float}, {cooMethod, 9, 11, ir.Float},
	} {
		m := modelOf(c.from, random("w", c.dt, []int64{64, 64}, density(.03)))
		before := save(t, m, ir.NewEval(""), "dense.onnx")
		rows, e := apply(t, m, 2, stepOf(t, c.method, nil))
		if got := m.Opset(""); got != c.to {
			t.Errorf("%s: opset %d became %d, want %d", c.method.Name, c.from, got, c.to)
		}
		if noted := rebuilt(rows); noted != (c.from != c.to) {
			t.Errorf("%s: opset %d to %d: rows %v", c.method.Name, c.from, c.to, rows)
		}
		after := save(t, m, e, "sparse.onnx")
		if err := w.Check(after, true); err != nil {
			t.Error(err)
		}
		sameOutputs(t, w, before, after, conform.Options{})
	}
}

// A model that cannot be raised keeps its weights, and rows have the reason.
func TestOpsetOutOfReach(t *testing.T) {
	m := modelOf(8, random("w", ir.Float, []int64{64, 64}, density(.03)))
	m.Graph.Insert(nil, "Scan", m.Graph.Inputs[:1])
	rows, _ := apply(t, m, 1, stepOf(t, autoMethod, nil))
	if r := rowOf(t, rows, "w"); r.Status != pass.Skipped ||
		!strings.Contains(report.Why(r), "no delta8 (opset 11, Scan") {
		t.Errorf("%s: %s", r.Status, report.Why(r))
	}
}

// Weights of IR 3 are graph inputs by rule: they leave them.
func TestListedInputs(t *testing.T) {
	w := conform.Start(t)
	m := modelOf(11, random("w", ir.Float, []int64{64, 64}, density(.03)))
	m.IRVersion = 3
	m.Graph.Inputs = append(m.Graph.Inputs, m.Graph.Consts()...)
	rows, e := apply(t, m, 1, stepOf(t, deltaMethod, nil))
	if r := rowOf(t, rows, "w"); r.Status != pass.Changed || !strings.Contains(report.Why(r), "no longer a graph input") {
		t.Errorf("%s: %s", r.Status, report.Why(r))
	}
	if err := w.Check(save(t, m, e, "sparse.onnx"), true); err != nil {
		t.Error(err)
	}
}

// Equal weights share one form.
func TestEqualWeightsAreStoredOnce(t *testing.T) {
	w := conform.Start(t)
	a := random("a", ir.Float, []int64{64, 64}, density(.03))
	b := a
	b.name = "b"
	m := modelOf(13, a, b)
	before := save(t, m, ir.NewEval(""), "dense.onnx")
	rows, e := apply(t, m, 2, stepOf(t, deltaMethod, nil))
	if got := rowOf(t, rows, "b").SharedWith; got != "a" {
		t.Errorf("b is shared with %q", got)
	}
	after := save(t, m, e, "sparse.onnx")
	sameOutputs(t, w, before, after, conform.Options{})
	scatters := 0
	for n := range m.Nodes() {
		if n.Op.Is("ScatterElements") {
			scatters++
		}
	}
	if scatters != 1 {
		t.Errorf("%d forms, want one", scatters)
	}
}

// Codes that an earlier step made are stored sparsely in the same run, and integer
// kernels still read them.
func TestCodesOfTheSameRun(t *testing.T) {
	w := conform.Start(t)
	m := ir.NewModel()
	m.IRVersion, m.Opsets, m.Graph.Name = 8, []ir.Opset{{Version: 13}}, "g"
	g := m.Graph
	x := g.NewValue("x")
	x.Type = typeOf(ir.Spec{DType: ir.Float, Shape: []int64{4, 1024}})
	g.Inputs = append(g.Inputs, x)
	dense := megaWeight()
	f := &ir.Tensor{Spec: dense.Spec, Source: ir.Mem(dense.data)}
	codes := g.AddConst("q", signs(f))
	scale := g.AddConst("s", &ir.Tensor{Spec: ir.Spec{DType: ir.Float},
		Source: ir.Mem(binary.LittleEndian.AppendUint32(nil, math.Float32bits(.5)))})
	q := g.InsertN(nil, "DynamicQuantizeLinear", 3, []*ir.Value{x})
	y := g.Insert(nil, "MatMulInteger", []*ir.Value{q[0], codes, q[2]})
	y = g.Insert(nil, "Cast", []*ir.Value{y}, ir.IntAttr("to", int64(ir.Float)))
	y = g.Insert(nil, "Mul", []*ir.Value{y, g.Insert(nil, "Mul", []*ir.Value{q[1], scale})})
	y.Name, y.Type = "y", typeOf(ir.Spec{DType: ir.Float, Shape: []int64{4, 1024}})
	g.AddOutput(y)

	before := save(t, m, ir.NewEval(t.TempDir()), "dense.onnx")
	rows, e := apply(t, m, 2, stepOf(t, autoMethod, nil))
	after := save(t, m, e, "sparse.onnx")
	if n := fileSize(t, after); n > 212_000 {
		t.Errorf("%d B, want at most 0.212 MB: %s", n, report.Why(rowOf(t, rows, "q")))
	}
	if err := w.Check(after, true); err != nil {
		t.Error(err)
	}
	sameOutputs(t, w, before, after, conform.Options{})
	ops, err := w.OptimizedOps(after, conform.Options{})
	if err != nil || ops["com.microsoft.DynamicQuantizeMatMul"] != 1 || ops["CumSum"] != 0 {
		t.Errorf("the runtime makes %v of it: %v", ops, err)
	}
}

// signs is a recipe of codes: 1 for each value of f and 0 for each zero.
func signs(f *ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "signs", In: []*ir.Tensor{f}, Out: []ir.Spec{{Name: "q", DType: ir.Int8, Shape: f.Shape}},
		Work: 8 << 20}
	r.Run = codesOf
	return r.Derive()[0]
}

func TestExportIsWhatSciPyReads(t *testing.T) {
	w := conform.Start(t)
	for _, method := range formMethods() {
		for _, dt := range []ir.DType{ir.Int8, ir.Uint8, ir.Float16, ir.BFloat16, ir.Float, ir.Double} {
			x := random("a/../w:0", dt, []int64{64, 12, 16}, blocks(192, .01))
			rows, e := apply(t, modelOf(20, x), 2, stepOf(t, method, options{"min-size": "8"}))
			if rows[0].Status != pass.Changed {
				t.Fatalf("%s: %s", method.Name, report.Why(rows[0]))
			}
			dir := filepath.Join(t.TempDir(), "out")
			set := &atomicfile.Set{}
			if err := Export(context.Background(), e, rows, dir, set); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(set.Publish(""), set.Close()); err != nil {
				t.Fatal(err)
			}
			s, err := w.Sparse(filepath.Join(dir, "a_.._w_0.npz"))
			if err != nil {
				t.Errorf("%s %s: %v", method.Name, dt, err)
				continue
			}
			want := map[string]string{"coo": "coo", "bsr": "bsr"}[method.Name]
			if want == "" {
				want = "csr"
			}
			if s.Format != want || len(s.Dense.Shape) != 2 || s.Dense.Shape[0] != 64 || s.Dense.Shape[1] != 192 {
				t.Errorf("%s %s: %s %v", method.Name, dt, s.Format, s.Dense.Shape)
			}
			if !bytes.Equal(s.Dense.Data, widened(x)) {
				t.Errorf("%s %s: other values: %s", method.Name, dt, s.Dense.DType)
			}
		}
	}
}

// widened is x with 16-bit floats as float32, as SciPy gets them.
func widened(x weight) []byte {
	if x.DType.Bits() != 16 {
		return x.data
	}
	f := make([]float32, x.Elems())
	if err := pass.NewFloats(bytes.NewReader(x.data), x.DType).Read(f, 0); err != nil {
		panic(err)
	}
	return kernel.Bytes(f)
}

func TestFileNames(t *testing.T) {
	taken := map[string]bool{}
	for _, c := range [][2]string{
		{"w", "w.npz"}, {"W", "W-2.npz"}, {"w", "w-3.npz"}, {"w-2", "w-2-2.npz"}, {"", "_.npz"}, {"..", "_...npz"},
		{"../../etc/passwd", "_.._.._etc_passwd.npz"[1:]},
		{"/abs", "_abs.npz"}, {"a\\b\x00c", "a_b_c.npz"}, {"größe", "gr__e.npz"},
		{strings.Repeat("x", 500), strings.Repeat("x", maxName) + ".npz"},
	} {
		if got := fileName(c[0], taken); got != c[1] && "_"+c[1] != got {
			t.Errorf("%q is called %q, want %q", c[0], got, c[1])
		}
	}
}

// External data keeps forms of some size outside of the model file.
func TestExternalData(t *testing.T) {
	w := conform.Start(t)
	m := modelOf(13, random("w", ir.Float, []int64{256, 256}, density(.1)))
	before := save(t, m, ir.NewEval(""), "dense.onnx")
	_, e := apply(t, m, 2, stepOf(t, autoMethod, nil))
	after := filepath.Join(t.TempDir(), "sparse.onnx")
	o := onnx.SaveOptions{Workers: 2, Memory: 1 << 20, Eval: e, External: true}
	if _, err := onnx.Save(context.Background(), m, after, o); err != nil {
		t.Fatal(err)
	}
	sameOutputs(t, w, before, after, conform.Options{})
	undone(t, before, after)
}

// Dense restores weights selected by the dense weight's name, and has rows for the others.
func TestDenseOfASelection(t *testing.T) {
	m := modelOf(13, random("a", ir.Float, []int64{64, 64}, density(.1)),
		random("b", ir.Float, []int64{64, 64}, density(.2)))
	_, e := apply(t, m, 1, stepOf(t, deltaMethod, nil))
	m = open(t, save(t, m, e, "sparse.onnx"))
	rows, _ := apply(t, m, 1, stepOf(t, denseMethod, options{"only": "a"}))
	rows = slices.DeleteFunc(rows, func(r pass.Row) bool { return !pass.IsWeight(r.Before) })
	if len(rows) != 2 {
		t.Fatalf("%d rows of weights: %+v", len(rows), rows)
	}
	if rows[0].Tensor != "a" || rows[0].Status != pass.Changed {
		t.Errorf("%s: %s: %s", rows[0].Tensor, rows[0].Status, report.Why(rows[0]))
	}
	if rows[1].Status != pass.Skipped || report.Why(rows[1]) != "not selected by --only" {
		t.Errorf("%s: %s: %s", rows[1].Tensor, rows[1].Status, report.Why(rows[1]))
	}
}
