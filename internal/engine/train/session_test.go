package train_test

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// Repeated runs of a graph of a loss, its clipped gradient and an update move w, the caller's array, to the target.
func TestSessionUpdatesWeights(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 24}, {Domain: "mcompress", Version: 1}}
	g := m.Graph
	arrays := map[string]*ir.Array{
		"w": ir.ArrayOf([]float32{3, -2, 5, 0}, 4), "m": ir.NewArray(ir.Float, 4), "v": ir.NewArray(ir.Float, 4),
		"target": ir.ArrayOf([]float32{1, 2, 3, 0}, 4), "scale": ir.ArrayOf([]float32{1}),
		"hyper": ir.NewArray(ir.Float, 4),
	}
	values := map[string]*ir.Value{}
	for _, name := range []string{"w", "m", "v", "target", "scale", "hyper"} {
		values[name] = g.AddValue(name)
		g.Inputs = append(g.Inputs, values[name])
	}
	add := func(typ string, outputs []string, attrs []*ir.Attr, inputs ...string) {
		var in, out []*ir.Value
		for _, name := range inputs {
			in = append(in, values[name])
		}
		for _, name := range outputs {
			values[name] = g.NewValue(name)
			out = append(out, values[name])
		}
		n := g.NewNode(ir.OpID{Domain: "mcompress", Type: typ}, in, attrs...)
		n.SetOutputs(out...)
		g.Append(n)
	}
	add("MeanSquaredLoss", []string{"loss", "dw"}, nil, "w", "target", "scale")
	add("SumSquares", []string{"squares"}, nil, "dw")
	add("ClipFactor", []string{"clipped"}, []*ir.Attr{ir.FloatAttr("max_norm", 1)}, "hyper", "squares")
	add("AdamUpdate", []string{"sum"}, nil, "w", "dw", "m", "v", "clipped")
	g.AddOutput(values["loss"])
	s, err := engine.Open(t.Context(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for step := range 400 {
		copy(ir.View[float32](arrays["hyper"]), []float32{0.05, float32(step + 1), 1, 0})
		if _, err := s.Run(t.Context(), arrays, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range ir.View[float32](arrays["w"]) {
		if want := ir.View[float32](arrays["target"])[i]; math.Abs(float64(v-want)) > 1e-2 {
			t.Errorf("weight %d is %v, want %v", i, v, want)
		}
	}
}
