package report

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// twoFiles is the report of j's two files alone.
func twoFiles(t *testing.T, j job) *Report {
	t.Helper()
	in := j.input(t)
	in.Rows, in.Recipe, in.Errors = nil, nil, true
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, r)
	return r
}

func rowOf(t *testing.T, r *Report, tensor string) Row {
	t.Helper()
	for _, x := range r.Ledger {
		if x.Tensor == tensor {
			return x
		}
	}
	t.Fatalf("no row speaks of %q", tensor)
	return Row{}
}

func TestMatchByName(t *testing.T) {
	r := twoFiles(t, job{model: network(odd()), methods: []*pass.Method{halving}})
	w, bias := rowOf(t, r, "w"), rowOf(t, r, "bias")
	if w.Status != "changed" || !near(w.Sparsity, 0.5) || w.Error.Exact || *w.Error.Max != 1.5 {
		t.Errorf("w: got %+v", w)
	}
	if bias.Status != "skipped" || bias.Consumers[0] != "Add" {
		t.Errorf("bias: got %+v", bias)
	}
	if r.Coverage != (Coverage{16, 24, 0.666667}) {
		t.Errorf("coverage: got %+v", r.Coverage)
	}
}

func TestMatchByConsumer(t *testing.T) {
	j := job{model: network(odd()), methods: []*pass.Method{rounding}}
	reported := j.build(t)
	j.model = network(odd())
	found := twoFiles(t, j)
	if found.Totals.LoadedBytes != reported.Totals.LoadedBytes || found.Totals.TensorBytes != reported.Totals.TensorBytes {
		t.Errorf("found %+v, reported %+v", found.Totals, reported.Totals)
	}
	w := rowOf(t, found, "w")
	if w.After.DType != "int8" || w.After.Payload != 4 || w.After.Scales != 4 || w.After.RuntimeBytes != 16 {
		t.Errorf("got %+v", w.After)
	}
}

func TestMatchByPrefix(t *testing.T) {
	source := network(odd())
	result := network(weight("w_quantized", []int64{2, 2}, 0, 2, -2, 4))
	result.Graph.AddConst("w_scale", weight("", []int64{}, 1))
	for n := range result.Graph.Nodes() {
		n.Name = ""
		n.Outputs[0].Name += "'"
	}
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	side := func(m *ir.Model) Model { return Model{Path: "m.onnx", IR: m} }
	r, err := Build(t.Context(), Input{Source: side(source), Result: side(result), Eval: eval, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a := rowOf(t, r, "w").After; a.Payload != 16 || a.Scales != 4 {
		t.Errorf("got %+v", a)
	}
}

func TestMatchOfRemovedTensors(t *testing.T) {
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	result := network(weight("elsewhere", []int64{2, 2}, 1, 2, 3, 4))
	for n := range result.Graph.Nodes() {
		n.Name = ""
		n.Outputs[0].Name += "'"
	}
	r, err := Build(t.Context(), Input{Source: Model{IR: network(odd())}, Result: Model{IR: result}, Eval: eval,
		Workers: 1, Errors: true})
	if err != nil {
		t.Fatal(err)
	}
	if w := rowOf(t, r, "w"); w.Status != "changed" || w.Why() == "" || w.After.Bytes != 0 || w.Error != nil {
		t.Errorf("got %+v", w)
	}
}
