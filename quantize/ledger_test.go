package quantize

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/dynamic"
)

// onFixture runs v on a fixture.
func onFixture(t *testing.T, v variant, name string) result {
	t.Helper()
	r := &comparison{variant: v, path: fixture(name), out: filepath.Join(t.TempDir(), "out.onnx")}
	return result{v.apply(t, r.path, r.out), r, t}
}

func TestLedgerOfFixtures(t *testing.T) {
	half := variant{Float16{}.Method(), nil}
	for _, c := range []struct {
		variant
		fixture string
		rows    map[string]string
	}{
		{dyn, "nonfinite", map[string]string{"w_nan": "skipped values not finite: NaN",
			"w_inf": "skipped values not finite: infinities", "w_sound": "changed matmul-integer"}},
		{weights, "nonfinite", map[string]string{"w_nan": "skipped values not finite: NaN",
			"w_inf": "skipped values not finite: infinities", "w_sound": "changed cast-mul"}},
		{half, "nonfinite", map[string]string{"w_nan": "skipped values not finite: NaN",
			"w_inf": "skipped values not finite: infinities", "w_sound": "changed cast-float16"}},
		{dyn, "function_argument", map[string]string{"w1": "skipped argument of fixture.Linear Linear_h"}},
		{half, "function_argument", map[string]string{"w1": "changed cast-float16"}},
		{dyn, "overridable", map[string]string{"w_default": "skipped graph input, replaceable by callers"}},
		{weights, "overridable", map[string]string{"w_default": "skipped graph input, replaceable by callers"}},
		{half, "overridable", map[string]string{"w_default": "skipped graph input, replaceable by callers"}},
	} {
		t.Run(c.String()+" "+c.fixture, func(t *testing.T) {
			onFixture(t, c.variant, c.fixture).expect(c.rows)
		})
	}
}

// Quantized weights get rows, and stay as they are.
func TestQuantizedWeightsGetRows(t *testing.T) {
	for _, v := range all[:3] {
		for _, name := range []string{"qdq", "int4"} {
			r, rows := onFixture(t, v, name), 0
			for _, row := range r.Report.Ledger {
				if row.Reason.Code == pass.Already {
					rows++
				}
			}
			if rows == 0 || changed(r.Result) != 0 {
				t.Errorf("%s %s: %d rows of quantized weights: %+v", v, name, rows, r.Report.Ledger)
			}
		}
	}
}

// Every float weight has exactly one row. Scales share that of their quantized weight.
func TestNoSilentSkip(t *testing.T) {
	for _, path := range conform.Fixtures(t) {
		for _, v := range append(all, dynTables) {
			rows := map[string]int{}
			r := v.apply(t, path, filepath.Join(t.TempDir(), "out.onnx"))
			for _, row := range r.Report.Ledger {
				rows[row.Scope+"/"+row.Tensor]++
			}
			for g := range opened(t, path).Model.Graphs() {
				for _, c := range g.Consts() {
					if n := rows[pass.Scope(g)+"/"+c.Name]; pass.IsWeight(c.Const) && n != 1 &&
						!(n == 0 && pass.IsQuantizationParam(c)) {
						t.Errorf("%s %s: %d rows of %s", v, label(path), n, c.Name)
					}
				}
			}
		}
	}
}

// Equal weights are one quantized tensor in the file, and the ledger names the weight that it is stored for.
func TestDuplicatesAreStoredOnce(t *testing.T) {
	for _, v := range all {
		r := onFixture(t, v, "duplicated")
		shared := ""
		for _, row := range r.Report.Ledger {
			if row.Tensor == "w_second" {
				shared = row.SharedWith
			}
		}
		if shared != "w_first" {
			t.Errorf("%s: w_second is shared with %q", v, shared)
		}
		if n := r.int8Constants(1000); v.method != (Float16{}).Method() && n != 2 {
			t.Errorf("%s: %d tensors of quantized values", v, n)
		}
	}
}

// Functions have no initializers, and an opset of their own.
func TestFunctionBodies(t *testing.T) {
	for _, v := range []variant{dyn, weights} {
		r := onFixture(t, v, "function")
		if changed(r.Result) == 0 {
			t.Errorf("%s: nothing was changed: %+v", v, r.Report.Ledger)
		}
	}
	s := called(t, 9, func(b *builder, x *ir.Value) *ir.Value {
		return b.node("MatMul", []*ir.Value{x, b.weight("w", 48, 48)})
	})
	for _, v := range []variant{dyn, weights} {
		r := s.apply(v, 25)
		r.expect(map[string]string{"w": "changed"})
		m := opened(t, r.out).Model
		if body, main := m.Functions[0].Body.Opset(""), m.Opset(""); body != main ||
			v.method == dyn.method && body < dynamic.DynamicOpset {
			t.Errorf("%s: opset %d in the function, %d outside", v, body, main)
		}
		if m.IRVersion < opset.IRVersion(m.Opset("")) {
			t.Errorf("%s: IR version %d is older than opset %d", v, m.IRVersion, m.Opset(""))
		}
	}
}

// called is a model that calls a function with the attribute turn = 1.
func called(t *testing.T, version int64, body func(b *builder, x *ir.Value) *ir.Value) *builder {
	s := newBuilder(t, version)
	f := s.Model().AddFunction(ir.OpID{Domain: "local", Type: "Layer"})
	f.Opsets = []ir.Opset{{Version: version}}
	s.Model().Opsets = append(s.Model().Opsets, ir.Opset{Domain: "local", Version: 1})
	s.Model().IRVersion = 8 // the first with functions
	b := s.in(f.Body)
	x := b.NewValue("fx")
	b.Inputs = append(b.Inputs, x)
	b.AddOutput(body(b, x))
	call := s.NewNode(f.ID, []*ir.Value{s.input("x", 3, 48)})
	y := s.NewValue("y")
	call.SetOutputs(y)
	s.Append(call)
	s.output("y", y, 3, 48)
	return s
}

// An attribute that the caller sets is not known in the body: not the default.
func TestAttributesFromTheCaller(t *testing.T) {
	turn := &ir.Attr{Name: "transB", Type: ir.AttrInt, Ref: "turn"}
	perm := &ir.Attr{Name: "perm", Type: ir.AttrInts, Ref: "order"}
	s := called(t, 13, func(b *builder, x *ir.Value) *ir.Value {
		y := b.node("Gemm", []*ir.Value{x, b.weight("w", 48, 48)}, turn)
		return b.node("MatMul", []*ir.Value{y, b.node("Transpose", []*ir.Value{b.weight("v", 48, 48)}, perm)})
	})
	call := s.First()
	call.SetAttr(ir.IntAttr("turn", 1))
	call.SetAttr(ir.IntsAttr("order", 0, 1))
	path := s.save()
	out := filepath.Join(t.TempDir(), "out.onnx")
	r := result{dyn.apply(t, path, out), &comparison{variant: dyn, path: path, out: out}, t}
	r.expect(map[string]string{
		"w": "skipped attribute of Gemm set by the caller of its function: transB",
		"v": "skipped attribute of Transpose set by the caller of its function: perm",
	})
}

// A name that is produced twice is ambiguous.
func TestAmbiguousNamesAreSkipped(t *testing.T) {
	s := newBuilder(t, 13)
	w := s.weight("w", 48, 48)
	y := s.node("MatMul", []*ir.Value{s.input("x", 3, 48), w})
	s.output("y", y, 3, 48)
	s.node("Identity", []*ir.Value{y}).Name = "w"
	path := s.save()
	for _, v := range all {
		r := v.apply(t, path, filepath.Join(t.TempDir(), "out.onnx"))
		if changed(r) != 0 || r.Report.Ledger[0].Why() != "two values have its name" {
			t.Errorf("%s: %+v", v, r.Report.Ledger)
		}
	}
}

// A rescaled constant has one note of its method.
func TestNotesOfRescaledConstants(t *testing.T) {
	for _, c := range []struct {
		v      variant
		reason pass.Code
	}{
		{variant{Smooth{}.Method(), nil}, pass.Smoothed},
		{variant{DynamicInt8{}.Method(), []string{"bias-correction"}}, pass.BiasCorrected},
	} {
		m, e := convolutional(t, &disk{}), ir.NewEval(t.TempDir())
		defer e.Close()
		r, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 1}, []pass.Options{c.v.step(t)})
		if err != nil {
			t.Fatal(err)
		}
		rescaled := 0
		for _, row := range r.Rows {
			if row.Form != pass.Rescaled {
				continue
			}
			rescaled++
			notes := map[pass.Code]int{}
			for _, n := range row.Notes {
				notes[n.Code]++
			}
			if notes[c.reason] != 1 {
				t.Errorf("%s: %q has %d notes of its method: %v", c.v, row.Tensor, notes[c.reason], row.Notes)
			}
		}
		if rescaled == 0 {
			t.Errorf("%s: no constant is rescaled", c.v)
		}
	}
}
