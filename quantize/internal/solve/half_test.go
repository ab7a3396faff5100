package solve

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
)

// narrowed is the float16 number nearest to x, and whether it equals x.
func narrowed(x float32) (float32, bool) {
	half, back := []uint16{0}, []float32{0}
	kernel.F16FromF32(half, []float32{x})
	kernel.F32FromF16(back, half)
	return back[0], back[0] == x
}

// Stored scales are the next float16 numbers away from 0; float16 numbers are unchanged.
func TestStoredIsTheNextHalf(t *testing.T) {
	g, r := Spec{Half: true}, rand.New(rand.NewPCG(7, 8))
	for range 1 << 16 {
		x := float32((r.Float64()*2 - 1) * math.Exp2(r.Float64()*44-29))
		got := g.stored(x)
		if _, ok := narrowed(got); !ok || math.Abs(float64(got)) < math.Abs(float64(x)) || got*x < 0 {
			t.Fatalf("%g is stored as %g", x, got)
		}
		if between, _ := narrowed(x); math.Abs(float64(between)) >= math.Abs(float64(x)) && between != got {
			t.Fatalf("%g is stored as %g, but %g is nearer", x, got, between)
		}
		if most := max(math.Abs(float64(x))*0x1p-10, 0x1p-24); math.Abs(float64(got-x)) > most {
			t.Fatalf("%g is stored as %g, more than %g away", x, got, most)
		}
		if (Spec{}).stored(x) != x {
			t.Fatalf("the float32 scale %g is stored as %g", x, (Spec{}).stored(x))
		}
	}
	for i := range 1 << 16 {
		x := []float32{0}
		kernel.F32FromF16(x, []uint16{uint16(i)})
		if x[0] == x[0] && g.stored(x[0]) != x[0] {
			t.Fatalf("the float16 number %g is stored as %g", x[0], g.stored(x[0]))
		}
	}
}

// Values are rounded to nearest for the stored scales, however small weights are, and no value is far outside the
// quantization range, as stored scales are never smaller.
func TestValuesAreRoundedForStoredScales(t *testing.T) {
	const k, n = 75, 21
	for _, size := range []float32{1, 1e-4, 3e-6, 1e-7} {
		w := weightsOf(k, n)
		for i := range w {
			w[i], _ = narrowed(w[i] * size)
		}
		for _, g := range nearestSpecs() {
			g.Half = true
			c, b, h := NewQuantized(k, n, g), NewQuantized(k, n, g), NewQuantized(k, n, g)
			Nearest(c, w)
			MSE(b, w)
			HQQ(h, w)
			for _, s := range append(append(append([]float32{}, c.Scale...), b.Scale...), h.Scale...) {
				if _, ok := narrowed(s); !ok || s == 0 {
					t.Fatalf("%+v: a scale is %g", g, s)
				}
			}
			for i := range w {
				c.wantNearest(t, w[i], i/n, i%n, 0.5)
				b.wantNearest(t, w[i], i/n, i%n, 0.75)
				h.wantNearest(t, w[i], i/n, i%n, 0.75)
				most := 0.5
				if g.Symmetric {
					most = 1 // at the end with one level less
				}
				if got, s := c.Weight(i/n, i%n),
					c.Scale[i/n/g.Block*n+i%n]; math.Abs(float64(got-w[i])) > (most+1e-4)*math.Abs(float64(s)) {
					t.Fatalf("%+v: %g is the dequantized value of %g, scale %g", g, got, w[i], s)
				}
			}
		}
	}
}
