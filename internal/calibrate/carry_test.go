package calibrate_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// Each run has the outputs of the run before, which is computed from its samples: without read-ahead, too.
func TestCarriedOutputs(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 9, []ir.Opset{{Version: 17}}
	g := m.Graph
	for _, name := range []string{"x", "sum"} {
		v := g.AddValue(name)
		v.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 1}}}
		g.Inputs = append(g.Inputs, v)
	}
	y := g.Insert(nil, "Add", g.Inputs)
	y.Type = g.Inputs[0].Type
	g.AddOutput(y)
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(path, append(dataset.NPYHeader("<f4", []int64{5, 1}),
		ir.ArrayOf([]float32{1, 2, 3, 4, 5}, 5).Data...), 0o644); err != nil {
		t.Fatal(err)
	}
	d := calibrate.Data{}
	d.Path, d.Carry, d.Prefetch = path, []string{y.Name + "=sum"}, new(int)
	var got []float32
	s := background()
	s.Model = m
	if err := d.Each(t.Context(), s, m, []string{y.Name}, func(_ string, a *ir.Array) error {
		got = append(got, ir.View[float32](a)[0])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []float32{1, 3, 6, 10, 15}) {
		t.Errorf("sums are %v", got)
	}
}
