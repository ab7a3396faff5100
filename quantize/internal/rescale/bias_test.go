package rescale_test

import (
	"context"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// Constants that broadcast to one value per channel are read as that; others are nil.
func TestPerChannel(t *testing.T) {
	g := ir.NewModel().Graph
	eval := ir.NewEval("")
	defer eval.Close()
	e := rescale.New(&pass.Step{Model: ir.NewModel(), Eval: eval})
	for _, c := range []struct {
		name  string
		shape []int64
		place rescale.Place
		want  []float64
	}{
		{"scalar", nil, rescale.Place{Rank: 2}, []float64{1, 1, 1}},
		{"one element", []int64{1, 1}, rescale.Place{Rank: 2}, []float64{1, 1, 1}},
		{"last axis", []int64{3}, rescale.Place{Rank: 2}, []float64{1, 2, 3}},
		{"last axis of a row", []int64{1, 3}, rescale.Place{Rank: 2}, []float64{1, 2, 3}},
		{"channels of a picture", []int64{1, 3, 1, 1}, rescale.Place{Rank: 4, After: 2}, []float64{1, 2, 3}},
		{"channels without batch", []int64{3, 1, 1}, rescale.Place{Rank: 4, After: 2}, []float64{1, 2, 3}},
		{"columns of a picture", []int64{3}, rescale.Place{Rank: 4, After: 2}, nil},
		{"other number", []int64{2}, rescale.Place{Rank: 2}, nil},
		{"rows", []int64{3, 1}, rescale.Place{Rank: 2}, nil},
		{"matrix", []int64{3, 3}, rescale.Place{Rank: 2}, nil},
		{"higher rank", []int64{1, 1, 3}, rescale.Place{Rank: 2}, nil},
	} {
		spec := ir.Spec{Name: c.name, DType: ir.Float, Shape: c.shape}
		var x []float32
		for i := range spec.Elems() {
			x = append(x, float32(i+1))
		}
		v := g.AddConst(c.name, &ir.Tensor{Spec: spec, Source: ir.Floats(x...)})
		got, err := e.PerChannel(context.Background(), v, 3, c.place)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}
