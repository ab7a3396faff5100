package pass_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// keep marks every weight as changed without touching it.
func keep(_ context.Context, s *pass.Step) error {
	for _, v := range pass.Weights(s.Model) {
		s.Ledger.Changed(v, v.Const, pass.Consumers(v), pass.Row{Form: pass.InPlace})
	}
	return nil
}

func nothing(context.Context, *pass.Step) error { return nil }

func TestEveryWeightGetsARow(t *testing.T) {
	m := product(floats([]int64{1, 1}, 1), floats([]int64{1, 1}, 2))
	m.Graph.AddConst("unread", floats([]int64{3}, 1, 2, 3))
	m.Graph.AddConst("scalar", floats(nil, 1))
	res, err := run(t, m, pass.Environment{}, step(t, "nothing", pass.Prune, nothing))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]pass.Reason{}
	for _, r := range res.Rows {
		got[r.Tensor] = r.Reason
		if r.Status != pass.Skipped || !r.Counted {
			t.Errorf("%s: status %v, counted %v, want a counted skip", r.Tensor, r.Status, r.Counted)
		}
	}
	product := pass.Reason{Code: pass.Unsupported, Operator: "MatMul", Detail: "input 1"}
	want := map[string]pass.Reason{"w": product, "w1": product, "unread": {Code: pass.Unused}}
	for name, reason := range want {
		if got[name] != reason {
			t.Errorf("%s: reason %v, want %v", name, got[name], reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("rows %v, want %v: scalars are not weights", got, want)
	}
}

// Constants of integers are quantized weights, or none.
func TestRowsOfIntegers(t *testing.T) {
	m := product(floats([]int64{1, 1}, 1))
	g := m.Graph
	integers := func(name string, dt ir.DType) *ir.Value {
		spec := ir.Spec{DType: dt, Shape: []int64{2, 2}}
		return g.AddConst(name, &ir.Tensor{Spec: spec, Source: make(ir.Mem, spec.Bytes())})
	}
	g.AddOutput(g.Insert(nil, "DequantizeLinear",
		[]*ir.Value{integers("quantized", ir.Int8), g.AddConst("scale", floats(nil, 1))}))
	g.AddOutput(g.Insert(nil, "Gather",
		[]*ir.Value{g.AddConst("table", floats([]int64{2, 2}, 1, 2, 3, 4)), integers("indices", ir.Int64)}))
	res, err := run(t, m, pass.Environment{}, step(t, "nothing", pass.Prune, nothing))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]pass.Reason{"quantized": {Code: pass.Already, Detail: "int8"},
		"indices": {Code: pass.NoWeight, Detail: "int64"}}
	for _, r := range res.Rows {
		if reason, ok := want[r.Tensor]; ok && r.Reason != reason {
			t.Errorf("%s: reason %v, want %v", r.Tensor, r.Reason, reason)
		}
		delete(want, r.Tensor)
	}
	if len(want) != 0 {
		t.Errorf("no rows of %v", want)
	}
}

// Scales and zero points are part of the row of the quantized weight, also where those or the weight are behind views.
func TestParametersOfQuantizedWeights(t *testing.T) {
	for views := range 8 {
		m := product(floats([]int64{1, 1}, 1))
		g := m.Graph
		var in []*ir.Value
		for i, c := range []struct {
			name string
			of   *ir.Tensor
		}{
			{"quantized", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: []int64{2, 2}}, Source: make(ir.Mem, 4)}},
			{"scales", floats([]int64{2}, 1, 2)},
			{"zeros", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: []int64{2}}, Source: make(ir.Mem, 2)}},
		} {
			v := g.AddConst(c.name, c.of)
			if views>>i&1 == 1 {
				v = g.Insert(nil, "Identity", []*ir.Value{v})
			}
			in = append(in, v)
		}
		g.AddOutput(g.Insert(nil, "DequantizeLinear", in))
		res, err := run(t, m, pass.Environment{}, step(t, "nothing", pass.Prune, nothing))
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]pass.Code{}
		for _, r := range res.Rows {
			rows[r.Tensor] = r.Reason.Code
		}
		if rows["quantized"] != pass.Already || rows["scales"] != "" || rows["zeros"] != "" {
			t.Errorf("views %03b: rows %v", views, rows)
		}
	}
}

func TestSelectionDeterminesCountedRows(t *testing.T) {
	for _, c := range []struct {
		flags   []string
		counted int
	}{
		{nil, 2},
		{[]string{"-min-size", "2"}, 1},
		{[]string{"-only", "w1"}, 1},
		{[]string{"-skip", "w*"}, 0},
		{[]string{"-only", "w1", "-skip", "op:MatMul"}, 0},
		{[]string{"-only", "op:Mat*"}, 2},
	} {
		m := product(floats([]int64{1, 1}, 1), floats([]int64{1, 2}, 2, 3))
		res, err := run(t, m, pass.Environment{}, step(t, "nothing", pass.Prune, nothing, c.flags...))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range res.Rows {
			if r.Counted {
				n++
			}
		}
		if n != c.counted || len(res.Rows) != 2 {
			t.Errorf("%v: %d of %d rows counted, want %d of 2", c.flags, n, len(res.Rows), c.counted)
		}
	}
}

func TestAPanicIsAnErrorOfOneLine(t *testing.T) {
	boom := step(t, "boom", pass.Prune, func(context.Context, *pass.Step) error { panic("index out of range") })
	_, err := run(t, product(), pass.Environment{}, boom)
	var bug *ir.Bug
	if !errors.As(err, &bug) || len(bug.Stack) == 0 {
		t.Fatalf("got %v, want a Bug with its stack", err)
	}
	if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "boom: internal error: index out of range") {
		t.Errorf("got %q", s)
	}
}

func TestInvalidModelReportsTheMethod(t *testing.T) {
	bad := step(t, "bad", pass.Prune, func(_ context.Context, s *pass.Step) error {
		s.Model.Graph.RemoveConst(s.Model.Graph.Consts()[0])
		return nil
	})
	_, err := run(t, product(floats([]int64{1, 1}, 1)), pass.Environment{}, bad)
	var bug *ir.Bug
	if !errors.As(err, &bug) || !strings.HasPrefix(err.Error(), "bad: internal error: the result is not a valid model: ") {
		t.Fatalf("got %v", err)
	}
}

// A result that breaks a rule is a bug, unless the source broke one already.
func TestFaultOfAnInvalidResult(t *testing.T) {
	for _, valid := range []bool{true, false} {
		m := product(floats([]int64{1, 1}, 1))
		var n *ir.Node
		for n = range m.Nodes() {
			break
		}
		if !valid {
			n.SetAttr(&ir.Attr{Name: "unknown", Type: ir.AttrInt})
		}
		bad := step(t, "bad", pass.Prune, func(context.Context, *pass.Step) error {
			n.SetAttr(&ir.Attr{Name: "another", Type: ir.AttrInt})
			return nil
		})
		_, err := run(t, m, pass.Environment{}, bad)
		var bug *ir.Bug
		if err == nil || errors.As(err, &bug) != valid || !strings.Contains(err.Error(), "another") {
			t.Errorf("source valid %v: got %v", valid, err)
		}
	}
}

func TestWeightsAreRemovedFromInputsBelowIR4(t *testing.T) {
	for _, keepIR := range []bool{false, true} {
		m := product(floats([]int64{1, 1}, 1))
		m.IRVersion, m.Opsets = 3, []ir.Opset{{Version: 9}}
		m.Graph.Inputs = append(m.Graph.Inputs, m.Graph.Consts()[0])
		if _, err := run(t, m, pass.Environment{KeepIR: keepIR}, step(t, "keep", pass.Prune, keep)); err != nil {
			t.Fatal(err)
		}
		inputs, version := 1, int64(4)
		if keepIR {
			inputs, version = 2, 3
		}
		if len(m.Graph.Inputs) != inputs || m.IRVersion != version {
			t.Errorf("keepIR %v: %d inputs, IR %d; want %d and %d", keepIR, len(m.Graph.Inputs), m.IRVersion, inputs, version)
		}
	}
}

func TestNodesAreSorted(t *testing.T) {
	m := product(floats([]int64{1, 1}, 1), floats([]int64{1, 1}, 2))
	g := m.Graph
	first, last := g.First(), g.Last()
	// The second product is before the first, as in models of some exporters.
	moved := g.NewNode(last.Op, last.Inputs())
	out := g.Outputs[0]
	y := g.NewValue("y")
	moved.SetOutputs(y)
	g.InsertBefore(first, moved)
	out.ReplaceUses(y)
	last.Remove()
	if _, err := run(t, m, pass.Environment{}, step(t, "keep", pass.Prune, keep)); err != nil {
		t.Fatal(err)
	}
	if g.First() != first || g.Last() != moved {
		t.Error("the consumer is still before its producer")
	}
}

func TestPatternWithoutMatchListsTheNearestNames(t *testing.T) {
	for flag, want := range map[string]string{
		"-only=op:Conv":   `only: "op:Conv" matches no tensor, node, module or operator; the nearest names are op:MatMul`,
		"-skip=*ncoder.0": `skip: "*ncoder.0" matches no tensor, node, module or operator; the nearest names are encoder.1, encoder.1.w, encoder`,
	} {
		m := product(floats([]int64{1, 1}, 1), floats([]int64{1, 2}, 2, 3))
		m.Graph.AddConst("encoder.1.w", floats([]int64{1}, 1)).Name = "encoder.1.w"
		_, err := run(t, m, pass.Environment{}, step(t, "nothing", pass.Prune, nothing, flag))
		var option *pass.OptionError
		if !errors.As(err, &option) || err.Error() != "nothing: "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// An initializer that is also an input from IR 4 on is an input to steps, and keeps its place, tensor and row.
func TestOverridableInputsAreNoConstants(t *testing.T) {
	for _, irVersion := range []int64{3, 9} {
		m := product(floats([]int64{1, 1}, 1), floats([]int64{1, 1}, 2))
		m.IRVersion = irVersion
		v := m.Graph.Consts()[0]
		before := v.Const
		m.Graph.Inputs = append(m.Graph.Inputs, v)
		seen := false
		look := func(_ context.Context, s *pass.Step) error {
			seen = v.Const != nil
			if v.Initializer() != before {
				t.Error("who runs the model does not find the default")
			}
			s.Model.Graph.AddConst("new", floats([]int64{1}, 3))
			return nil
		}
		res, err := run(t, m, pass.Environment{}, step(t, "look", pass.Prune, look))
		if err != nil {
			t.Fatal(err)
		}
		if seen != (irVersion == 3) {
			t.Errorf("IR %d: a constant to steps: %v", irVersion, seen)
		}
		if v.Const != before || v.Default != nil || m.Graph.Consts()[0] != v || irVersion > 3 && !v.IsInput() {
			t.Errorf("IR %d: the default or its place changed", irVersion)
		}
		rows := 0
		for _, r := range res.Rows {
			if r.Tensor == v.Name {
				rows++
				if got := r.Reason.Code == pass.Overridable; got != (irVersion > 3) || r.Before != before {
					t.Errorf("IR %d: row %+v", irVersion, r)
				}
			}
		}
		if rows != 1 {
			t.Errorf("IR %d: %d rows", irVersion, rows)
		}
	}
}

// A step that writes what runtimes refuse is a bug of the program, unless the source breaks the same rule.
func TestRulesThatAStepBreaks(t *testing.T) {
	newer := func(_ context.Context, s *pass.Step) error {
		g := s.Model.Graph
		v := g.Outputs[0]
		g.SetOutputs(g.Insert(nil, "Swish", []*ir.Value{v}))
		return nil
	}
	m := product(floats([]int64{1, 1}, 1))
	var bug *ir.Bug
	if _, err := run(t, m, pass.Environment{}, step(t, "newer", pass.Prune, newer)); !errors.As(err, &bug) ||
		!strings.Contains(err.Error(), "Swish: no operator") {
		t.Errorf("an operator that the opset lacks: %v", err)
	}
	m = product(floats([]int64{1, 1}, 1))
	m.Graph.SetOutputs(m.Graph.Insert(nil, "Swish", []*ir.Value{m.Graph.Outputs[0]}))
	if _, err := run(t, m, pass.Environment{}, step(t, "newer", pass.Prune, newer)); err != nil {
		t.Errorf("a rule that the source breaks: %v", err)
	}
}
