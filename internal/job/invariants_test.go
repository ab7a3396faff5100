package job

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report"
)

// A plan with other sizes, forms or weights than its result is noticed, and a weight without a row.
func TestBrokenInvariants(t *testing.T) {
	m := ir.NewModel()
	w := m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2}}})
	made := func(change func(*report.Report)) *report.Report {
		r := &report.Report{Weights: []report.Weight{{Tensor: "w", Forms: []string{"float16"},
			Bytes: report.Change{Before: 8, After: 4}}}}
		change(r)
		return r
	}
	same := func(*report.Report) {}
	for name, c := range map[string]struct {
		change func(*report.Report)
		want   string
	}{
		"nothing": {same, ""},
		"file":    {func(r *report.Report) { r.Totals.FileBytes.After = 3 }, "files of {0 3} bytes, planned {0 0}"},
		"tensors": {func(r *report.Report) { r.Totals.TensorBytes.After = 3 }, "tensors of {0 3} bytes, planned {0 0}"},
		"form": {func(r *report.Report) {
			r.Weights[0].Forms = nil
		}, "the weights of the plan are not those of the result"},
		"weight": {func(r *report.Report) {
			r.Weights[0].Bytes.After = 2
		}, "the weights of the plan are not those of the result"},
	} {
		if got := firstDifference(made(same), made(c.change), []*ir.Value{w}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	none := func(r *report.Report) { r.Weights = nil }
	if got := firstDifference(made(none), made(none), []*ir.Value{w}); got != `weight "w" has no row` {
		t.Error(got)
	}

	// A row of a weight of the same name in another graph is not that of w.
	other := func(r *report.Report) { r.Weights[0].Scope = "If/then" }
	if got := firstDifference(made(other), made(other), []*ir.Value{w}); got != `weight "w" has no row` {
		t.Error(got)
	}
	// Parts of a sparse form that became dense are in the row of the weight that was computed from them, if nothing
	// else reads them.
	dense := m.Graph.Insert(nil, "Identity", []*ir.Value{w})
	dense.Name = "dense"
	m.Graph.AddOutput(m.Graph.Insert(nil, "Relu", []*ir.Value{dense}))
	row := func(r *report.Report) { r.Weights[0].Tensor = "dense" }
	if got := firstDifference(made(row), made(row), []*ir.Value{w}); got != "" {
		t.Error(got)
	}
	m.Graph.AddOutput(m.Graph.Insert(nil, "Neg", []*ir.Value{w}))
	if got := firstDifference(made(row), made(row), []*ir.Value{w}); got != `weight "w" has no row` {
		t.Error(got)
	}
}
