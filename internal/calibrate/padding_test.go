package calibrate

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// texts are inputs of two padded rows; values before the padding are the numbers of their positions.
func texts(dt ir.DType, mask ...int64) (*ir.Graph, map[string]*ir.Array) {
	g := ir.NewModel().Graph
	axes := func(names ...string) *ir.Type {
		t := &ir.Type{Elem: ir.Int64}
		for _, n := range names {
			t.Shape = append(t.Shape, ir.Dim{Param: n})
		}
		return t
	}
	for name, t := range map[string]*ir.Type{"ids": axes("batch", "seq"), "attention_mask": axes("batch", "seq"),
		"states": axes("batch", "units", "seq"), "more": axes("batch", "units")} {
		v := g.NewValue(name)
		v.Type = t
		g.Inputs = append(g.Inputs, v)
	}
	m := ir.NewArray(dt, 2, 4)
	for i, x := range mask {
		m.Data[int64(i)*m.Bytes()/8] = byte(x)
	}
	return g, map[string]*ir.Array{"attention_mask": m, "ids": ir.ArrayOf([]int64{0, 1, 2, 3, 4, 5, 6, 7}, 2, 4),
		"states": ir.ArrayOf([]float32{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}, 2, 2, 4),
		"more":   ir.ArrayOf([]float32{1, 2}, 2, 1)}
}

// Positions that the mask excludes at the end of all rows are cut off every input with the mask's axis.
func TestPaddingIsCutOff(t *testing.T) {
	for _, dt := range []ir.DType{ir.Int64, ir.Int32, ir.Bool, ir.Float} {
		g, in := texts(dt, 1, 0, 0, 0, 1, 1, 0, 0)
		out := unpadded(g, in)
		if got := ir.View[int64](out["ids"]); !slices.Equal(got, []int64{0, 1, 4, 5}) ||
			!slices.Equal(out["ids"].Shape, []int64{2, 2}) {
			t.Errorf("%s: ids %v of shape %v", dt, got, out["ids"].Shape)
		}
		if got := ir.View[float32](out["states"]); !slices.Equal(got, []float32{0, 1, 10, 11, 20, 21, 30, 31}) {
			t.Errorf("%s: states %v", dt, got)
		}
		if out["more"] != in["more"] || !slices.Equal(out["attention_mask"].Shape, []int64{2, 2}) {
			t.Errorf("%s: more of shape %v, mask of %v", dt, out["more"].Shape, out["attention_mask"].Shape)
		}
	}
}

// Full rows, empty masks, axes of other sizes, and masks that share no axis are unchanged.
func TestInputsWithoutPaddingAreUnchanged(t *testing.T) {
	for name, change := range map[string]func(*ir.Graph, map[string]*ir.Array){
		"full":  func(_ *ir.Graph, in map[string]*ir.Array) { in["attention_mask"].Data[7*8] = 1 },
		"empty": func(_ *ir.Graph, in map[string]*ir.Array) { clear(in["attention_mask"].Data) },
		"sizes": func(_ *ir.Graph, in map[string]*ir.Array) { in["states"] = ir.ArrayOf(make([]float32, 12), 2, 2, 3) },
		"alone": func(g *ir.Graph, _ map[string]*ir.Array) {
			for _, v := range g.Inputs {
				if v.Name == "attention_mask" {
					v.Type.Shape[1].Param = "total"
				}
			}
		},
	} {
		g, in := texts(ir.Int64, 1, 1, 0, 0, 1, 0, 0, 0)
		change(g, in)
		for k, v := range unpadded(g, in) {
			if v != in[k] {
				t.Errorf("%s: %s is cut to %v", name, k, v.Shape)
			}
		}
	}
}
