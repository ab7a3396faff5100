package backward

import (
	"bytes"
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// masked returns the gradient from a mask of v; lo and hi are NaN for none.
func masked(t *testing.T, v, dy *ir.Array, lo, hi, on, off float32, workers int) *ir.Array {
	t.Helper()
	in := []*ir.Array{v, nil, nil}
	for i, b := range []float32{lo, hi} {
		if b == b && v.DType == ir.Double {
			in[i+1] = ir.ArrayOf([]float64{float64(b)})
		} else if b == b {
			in[i+1] = ir.ArrayOf([]float32{b})
		}
	}
	m := trial{"ActivationMask", nil, in, 1}.must(t, workers)
	attrs := []*ir.Attr{ir.FloatAttr("on", on), ir.FloatAttr("off", off)}
	return trial{"MaskedGrad", attrs, []*ir.Array{dy, m[0]}, 1}.must(t, workers)[0]
}

// Gradients from masks are bit-identical to those from results.
func TestMaskedGradients(t *testing.T) {
	none := float32(math.NaN())
	v, dy := gaussian(1, 3, 41, 203), gaussian(2, 3, 41, 203)
	for i := range ir.View[float32](v) {
		if i%7 == 0 {
			ir.View[float32](v)[i] = []float32{0, float32(math.Copysign(0, -1)), 0.25, 1}[i%4]
		}
	}
	for _, c := range []struct {
		typ             string
		attrs           []*ir.Attr
		lo, hi, on, off float32
	}{
		{"Relu", nil, 0, none, 1, 0},
		{"LeakyRelu", []*ir.Attr{ir.FloatAttr("alpha", 0.03)}, 0, none, 1, 0.03},
		{"Clip", []*ir.Attr{ir.FloatAttr("min", -0.5), ir.FloatAttr("max", 0.25)}, -0.5, 0.25, 1, 0},
		{"Clip", []*ir.Attr{ir.FloatAttr("max", 0.25)}, none, 0.25, 1, 0},
	} {
		for _, in := range [][]*ir.Array{{v, dy}, trial{in: []*ir.Array{v, dy}}.double().in} {
			want := trial{c.typ + "Grad", c.attrs, in, 1}.must(t, 2)[0]
			for _, workers := range []int{1, 3} {
				if got := masked(t, in[0], in[1], c.lo, c.hi, c.on, c.off, workers); !bytes.Equal(got.Data, want.Data) {
					t.Errorf("%s %s: the gradient differs with %d workers", c.typ, in[0].DType, workers)
				}
			}
		}
	}
	ir.View[float32](dy)[5] = none
	ir.View[float32](v)[5] = -1
	if got := ir.View[float32](masked(t, v, dy, 0, none, 1, 0, 1))[5]; got != 0 {
		t.Errorf("the gradient outside the region is %v", got)
	}
}

// Float16 values and gradients are masked like float32 ones.
func TestMaskedGradientsInFloat16(t *testing.T) {
	v, dy := gaussian(1, 5, 777), gaussian(2, 5, 777)
	for _, a := range []*ir.Array{v, dy} {
		for i, x := range ir.View[float32](a) {
			ir.View[float32](a)[i] = float32(math.Round(float64(x)*64) / 64) // exact in Float16
		}
	}
	want := masked(t, v, dy, 0, 1, 0.5, 0, 1)
	m := trial{"ActivationMask", nil, []*ir.Array{halved(v), ir.ArrayOf([]float32{0}), ir.ArrayOf([]float32{1})},
		1}.must(t, 2)
	for name, got := range map[string]*ir.Array{
		"dY": trial{"MaskedGrad", []*ir.Attr{ir.FloatAttr("on", 0.5)}, []*ir.Array{halved(dy), m[0]},
			1}.must(t, 2)[0],
		"dX": trial{"MaskedGrad", []*ir.Attr{ir.FloatAttr("on", 0.5), ir.IntsAttr("halves", 0)},
			[]*ir.Array{dy, m[0]}, 1}.must(t, 2)[0],
		"dY and dX": trial{"MaskedGrad", []*ir.Attr{ir.FloatAttr("on", 0.5), ir.IntsAttr("halves", 0)},
			[]*ir.Array{halved(dy), m[0]}, 1}.must(t, 2)[0],
	} {
		reference := want
		if got.DType == ir.Float16 {
			reference = halved(want)
		}
		if !bytes.Equal(got.Data, reference.Data) {
			t.Errorf("%s in Float16: the gradient differs", name)
		}
	}
}

// halved returns a in Float16.
func halved(a *ir.Array) *ir.Array {
	h := ir.NewArray(ir.Float16, a.Shape...)
	kernel.F16FromF32(ir.View[uint16](h), ir.View[float32](a))
	return h
}
