package grad

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A clone has the graph of its tape, and changes of its activations do not change the tape: they have the same effect
// as on the tape.
func TestClone(t *testing.T) {
	tape, err := New(t.Context(), residual(), Options{Inputs: map[string]ir.Spec{"x": {DType: ir.Float,
		Shape: []int64{4, 3, 18, 18}}}, BatchStatistics: true})
	if err != nil {
		t.Fatal(err)
	}
	y := tape.Graph().Outputs[0]
	if err := tape.Backward(map[*ir.Value]*ir.Value{y: tape.Input("dy", ir.Float, tape.Shape(y)...)}); err != nil {
		t.Fatal(err)
	}
	if err := tape.InferResults(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, clone := graphText(t, tape), tape.Clone()
	if got := graphText(t, clone); got != before {
		t.Errorf("clone:\n%s\nwant:\n%s", got, before)
	}
	change := func(t *testing.T, tape *Tape) string {
		a := tape.Activations()
		a.Recompute(a.Profile().Every(2))
		a.RecomputeCheap()
		if _, err := a.StoreFloat16(t.Context(), 4<<10, nil); err != nil {
			t.Fatal(err)
		}
		ops := ""
		for n := range tape.Graph().Nodes() {
			ops += fmt.Sprintln(n.Op, n.Name, len(n.Inputs()), len(n.Attrs))
		}
		return ops
	}
	got := change(t, clone)
	if graphText(t, tape) != before {
		t.Error("changes of the clone changed the tape")
	}
	if want := change(t, tape); got != want {
		t.Errorf("changed clone:\n%s\nwant:\n%s", got, want)
	}
}

func graphText(t *testing.T, tape *Tape) string {
	t.Helper()
	var b bytes.Buffer
	e := ir.NewEval("")
	defer e.Close()
	if err := tape.Model.Text(t.Context(), e, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
