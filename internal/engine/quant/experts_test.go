package quant

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/ir"
)

// dense are the weights of experts that QMoE computes with, each matrix by rows.
func dense(w, s, z *ir.Array, bits int) *ir.Array {
	n, k := int(w.Shape[1]), int(w.Shape[2])*8/bits
	block := k / max(1, int(s.Elems())/int(w.Shape[0])/n)
	to := ir.NewArray(ir.Float, w.Shape[0], w.Shape[1], int64(k))
	for i := range ir.View[float32](to) {
		zero := 1 << (bits - 1)
		if row := i / k; z != nil && len(z.Shape) == 3 {
			zero = int(narrow.Element(part(z.Data, row, int(z.Shape[2])), i%k/block, bits))
		} else if z != nil {
			zero = int(narrow.Element(part(z.Data, row/n, int(z.Shape[1])), row%n, bits))
		}
		ir.View[float32](to)[i] = float32(int(narrow.Element(w.Data, i, bits))-zero) * ir.View[float32](s)[i/block]
	}
	return to
}

// QMoE, prepacked or not, computes what MoE computes with the dequantized weights, FC3 included.
func TestQMoEEqualsMoE(t *testing.T) {
	x, router := random(1, 7, 32), random(2, 7, 4)
	for _, bits := range []int{2, 4, 8} {
		for _, block := range []int64{0, 16} {
			w := [3]*ir.Array{quantizedValues(3, ir.Uint8, 4, 48, int64(4*bits)),
				quantizedValues(4, ir.Uint8, 4, 32, int64(6*bits)), quantizedValues(5, ir.Uint8, 4, 48, int64(4*bits))}
			var s, z [3]*ir.Array
			for i, a := range w {
				n, blocks := a.Shape[1], []int64{2, 3, 2}[i]
				s[i], z[i] = scale(6, 4, n), quantizedValues(7, ir.Uint8, 4, n*int64(bits)/8)
				if block != 0 {
					s[i], z[i] = scale(6, 4, n, blocks), quantizedValues(7, ir.Uint8, 4, n, (blocks*int64(bits)+7)/8)
				}
			}
			z[1] = nil
			a := attrs{"k": 2, "activation_type": "silu", "normalize_routing_weights": 1, "expert_weight_bits": bits,
				"block_size": int(block)}
			bias := random(8, 4, 32)
			got := must(t, "QMoE", a, x, router, w[0], s[0], nil, w[1], s[1], bias, w[2], s[2], nil, z[0], nil, z[2])
			want := must(t, "MoE", a, x, router, dense(w[0], s[0], z[0], bits), nil, dense(w[1], s[1], nil, bits),
				bias, dense(w[2], s[2], z[2], bits), nil)
			near(t, got, want)
		}
	}
}

// near compares floats, relative to the largest.
func near(t *testing.T, got, want *ir.Array) {
	t.Helper()
	largest := 0.0
	for _, v := range ir.View[float32](want) {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i, v := range ir.View[float32](want) {
		if y := ir.View[float32](got)[i]; !(math.Abs(float64(y-v)) <= 1e-5*largest) {
			t.Fatalf("element %d of %v is %v, want %v", i, want, y, v)
		}
	}
}

// The three layouts of SwiGLU's gates and values are equivalent.
func TestLayoutsOfSwiGLUAreEquivalent(t *testing.T) {
	x, router, gates, values, out := random(1, 7, 8), random(2, 7, 4), random(3, 4, 6, 8), random(4, 4, 6, 8),
		random(5, 4, 8, 6)
	both := func(at func(row int64) int64) *ir.Array {
		to := ir.NewArray(ir.Float, 4, 12, 8)
		for e := range int64(4) {
			for row := range int64(12) {
				from := at(row)
				source := gates
				if from >= 6 {
					source, from = values, from-6
				}
				copy(ir.View[float32](to)[(e*12+row)*8:][:8], ir.View[float32](source)[(e*6+from)*8:])
			}
		}
		return to
	}
	a := attrs{"k": 2, "activation_type": "swiglu", "activation_alpha": 1.702, "activation_beta": 1.0,
		"swiglu_limit": 2.0}
	want := must(t, "MoE", a, x, router, gates, nil, out, nil, values)
	for fusion, at := range map[int]func(int64) int64{1: func(row int64) int64 { return row%2*6 + row/2 },
		2: func(row int64) int64 { return row }} {
		a["swiglu_fusion"] = fusion
		near(t, must(t, "MoE", a, x, router, both(at), nil, out, nil), want)
	}
}

// A gate of -Inf closes a unit, like that of Silu.
func TestClosedGatesOfExperts(t *testing.T) {
	x, router, gates, values, out := random(1, 7, 8), random(2, 7, 4), random(3, 4, 6, 8), random(4, 4, 6, 8),
		random(5, 4, 8, 6)
	closed := ir.NewArray(ir.Float, 4, 6)
	for i := range ir.View[float32](closed) {
		ir.View[float32](closed)[i] = float32(math.Inf(-1))
	}
	for _, activation := range []string{"silu", "swiglu"} {
		got := must(t, "MoE", attrs{"k": 2, "activation_type": activation}, x, router, gates, closed, out, nil, values)
		near(t, got, ir.NewArray(ir.Float, 7, 8))
	}
}

func TestUnsupportedExpertsAreNamed(t *testing.T) {
	in := []*ir.Array{random(1, 3, 8), random(2, 3, 4), random(3, 4, 6, 8), nil, random(5, 4, 8, 6)}
	for want, a := range map[string]attrs{
		`attribute use_sparse_mixer is not supported`:                                    {"use_sparse_mixer": 1},
		`attribute quant_type is "nvfp4": only int is supported`:                         {"quant_type": "nvfp4"},
		`attribute weights_prepacked is set: the layout depends on the device`:           {"weights_prepacked": 1},
		`attribute activation_type is "tanh", want relu, gelu, silu, swiglu or identity`: {"activation_type": "tanh"},
		`attribute k is 5 for 4 experts`:                                                 {"k": 5},
	} {
		if _, err := compute("MoE", a, 1, 1, in); err == nil || err.Error() != want {
			t.Errorf("%v: got error %v, want %s", a, err, want)
		}
	}
}
