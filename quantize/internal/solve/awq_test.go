package solve

import (
	"math"
	"math/rand/v2"
	"testing"
)

// outliers are inputs with some channels much larger than the others.
func outliers(r *rand.Rand, k, rows int) []float32 {
	var x []float32
	for range rows {
		for i := range k {
			x = append(x, float32(r.NormFloat64()*math.Exp(2*math.Sin(float64(i*i)))))
		}
	}
	return x
}

// The output error is no larger than without factors, and much smaller with outlier channels.
func TestAWQ(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const k, n, rows = 64, 40, 100
	p := pool(t, 2)
	for name, x := range map[string][]float32{"outliers": outliers(r, k, rows), "even": newLayer(r, k, n, rows).x,
		"zero": make([]float32, k*rows)} {
		for _, g := range specs[:4] {
			ws := []Matrix{{newLayer(r, k, n, 1).w, n}, {newLayer(r, k, 3, 1).w, 3}}
			f := AWQ(p, x, k, ws, g)
			got, want := 0.0, 0.0
			for _, w := range ws {
				got += w.scaledLoss(p, x, f, g)
				want += w.scaledLoss(p, x, tempered(f, 0), g)
			}
			if got > want || name == "loud" && got > 0.9*want {
				t.Errorf("%s, %+v: loss %v, without factors %v", name, g, got, want)
			}
			for _, v := range f {
				if !(v > 0) || math.IsInf(v, 0) {
					t.Fatalf("%s: factor %v", name, v)
				}
			}
		}
	}
}

// Channels of zeros get a finite factor.
func TestAWQOfZeroInputs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x := outliers(r, 8, 20)
	for i := 0; i < len(x); i += 8 {
		x[i] = 0
	}
	f := AWQ(pool(t, 1), x, 8, []Matrix{{newLayer(r, 8, 4, 1).w, 4}}, specs[0])
	if !(f[0] > 0) || math.IsInf(f[0], 0) {
		t.Errorf("factor %v", f[0])
	}
}
