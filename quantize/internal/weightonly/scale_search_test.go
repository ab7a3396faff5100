package weightonly

import (
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// loop is y = tanh(tanh(…x)) of so many iterations of a Loop.
func loop(trips int64) *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 21}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 4}}}
	m.Graph.Inputs = []*ir.Value{x}
	n := m.Graph.AddConst("n", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64}, Source: ir.Ints(trips)})
	y := m.Graph.Insert(nil, "Loop", []*ir.Value{n, nil, x})
	body := ir.NewSubgraph(m.Graph, y.Producer())
	body.Name = "body"
	for _, in := range []struct {
		name string
		elem ir.DType
		dims []ir.Dim
	}{{"iteration", ir.Int64, nil}, {"going", ir.Bool, nil}, {"state", ir.Float, []ir.Dim{{N: 1}, {N: 4}}}} {
		v := body.AddValue(in.name)
		v.Type = &ir.Type{Elem: in.elem, Shape: in.dims}
		body.Inputs = append(body.Inputs, v)
	}
	body.AddOutput(body.Insert(nil, "Identity", []*ir.Value{body.Inputs[1]}))
	body.AddOutput(body.Insert(nil, "Tanh", []*ir.Value{body.Inputs[2]}))
	y.Producer().SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: body})
	m.Graph.AddOutput(y)
	return m
}

// The samples on which rules for scales are compared are fewer for a model whose Loop executes its nodes often, which
// its planned values do not tell.
func TestComparedSamplesOfLoops(t *testing.T) {
	const most = maxComparedTotal / executionCost
	for _, trips := range []int64{1, 40, most / 4, most} {
		m := loop(trips)
		o := engine.Options{Workers: 1}
		c := &scaleComparison{step: &pass.Step{Model: m, Env: pass.Environment{Workers: 1}}, options: o}
		for _, e := range []**engine.Interpreter{&c.source, &c.mse, &c.nearest} {
			var err error
			if *e, err = engine.Open(t.Context(), m, o); err != nil {
				t.Fatal(err)
			}
		}
		c.source.Observe(&c.inner)
		for i := range 2 { // the second distribution has as many samples as the first
			before := c.inner
			if _, err := c.gain(t.Context(), dataset.Random{Seed: uint64(i)}); err != nil {
				t.Fatal(err)
			}
			perRun := executions(2 * trips)
			runs := (c.inner - before) / perRun
			if want := min(comparedSamples, (most+perRun-1)/perRun); runs != want {
				t.Errorf("%d iterations: %d samples, want %d", trips, runs, want)
			}
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
	}
}
