package dataset

import (
	"context"
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Masks of every form keep the same tokens, on either side: positions start at the first token, and neither padding nor
// the token after it is a target.
func TestPaddingByMasks(t *testing.T) {
	ids := ir.ArrayOf([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3, 4)
	keep := []int64{0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1}
	factors, added := make([]float32, 12), make([]float32, 12)
	for i, k := range keep {
		factors[i], added[i] = float32(k), float32(1-k)*-1e9
	}
	for typ, m := range map[string]*ir.Array{
		"int64[batch,seq]": ir.ArrayOf(keep, 3, 4), "bool[batch,seq]": ir.ArrayOf(keep, 3, 4),
		"float[batch,seq]": ir.ArrayOf(factors, 3, 4), "float[batch,1,1,seq]": ir.ArrayOf(added, 3, 1, 1, 4),
	} {
		g := ir.NewModel().Graph
		for _, in := range []Input{input("input_ids", "int64[batch,seq]"), input("attention_mask", typ),
			input("position_ids", "int64[batch,seq]")} {
			v := g.AddValue(in.Name)
			v.Type = in.Type
			g.Inputs = append(g.Inputs, v)
		}
		s := mustOpen(t, npz(t, false, map[string]*ir.Array{"input_ids": ids, "attention_mask": m}), Inputs(g),
			nil, Options{})
		b := all(t, s, Order{Size: 3})[0]
		if got, want := fmt.Sprint(ir.View[float32](b.Attended)), "[0 0 1 1 1 1 1 0 1 1 1 1]"; got != want {
			t.Errorf("%s: tokens %s, want %s", typ, got, want)
		}
		if got, want := fmt.Sprint(ir.View[int64](b.Inputs["position_ids"])), "[0 0 0 1 0 1 2 2 0 1 2 3]"; got != want {
			t.Errorf("%s: positions %s, want %s", typ, got, want)
		}
		if got, want := fmt.Sprint(b.Targets), "[[-1 -1 4] [6 7 -1] [10 11 12]]"; got != want {
			t.Errorf("%s: targets %s, want %s", typ, got, want)
		}
	}
}

// Positions are those of the whole sequence in each of the runs that decode it.
func TestPositionsOfPaddingInRuns(t *testing.T) {
	g := decoderGraph()
	arrays := map[string]*ir.Array{
		"input_ids":      ir.ArrayOf([]int64{4, 8, 15, 16, 23, 42, 3, 1, 4, 1}, 2, 5),
		"attention_mask": ir.ArrayOf([]int64{0, 0, 1, 1, 1, 1, 1, 1, 1, 1}, 2, 5),
	}
	s := mustOpen(t, npz(t, false, arrays), Inputs(g), Outputs(g), Options{Step: 3})
	var got []string
	for b, err := range s.Sequences(context.Background(), Order{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(ir.View[int64](b.Inputs["position_ids"]), b.Targets))
	}
	if want := "[[0 0 0 0 1 2] [[-1 -1 16] [3 1 4]] [1 2 3 4] [[23] [1]]]"; fmt.Sprint(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
