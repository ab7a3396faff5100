package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// rounding is a call of RoundCost with numbers of many magnitudes.
func rounding(r *rand.Rand, rows, stride int) (x, weight []float32, g *RoundGrid) {
	x, weight, g = gaussian(r, max(rows-1, 0)*stride+RoundLanes), make([]float32, rows), &RoundGrid{}
	for i := range weight {
		weight[i] = r.Float32() * float32(i%3)
	}
	for i := range x {
		x[i] *= float32(math.Ldexp(1, r.IntN(40)-20))
		if i%7 == 0 {
			x[i] = float32(r.IntN(9)) / 2 // exactly between two levels
		}
	}
	for j := range RoundLanes {
		g.Scale[j] = r.Float32() + float32(j%2)
		if r.IntN(3) == 0 {
			g.Scale[j] = -1
		}
		g.Inverse[j], g.Low[j], g.High[j] = 1/g.Scale[j], float32(-r.IntN(9)), float32(r.IntN(9))
	}
	return x, weight, g
}

func FuzzRoundCost(f *testing.F) {
	f.Add(uint64(1), uint8(32), uint8(8))
	f.Add(uint64(2), uint8(1), uint8(100))
	f.Add(uint64(3), uint8(0), uint8(9))
	f.Fuzz(func(t *testing.T, seed uint64, rows, stride uint8) {
		x, weight, g := rounding(rand.New(rand.NewPCG(seed, 0)), int(rows), RoundLanes+int(stride))
		var got, want RoundSums
		RoundCost(&got, x, RoundLanes+int(stride), weight, g)
		roundCostGo(&want, x, RoundLanes+int(stride), weight, g)
		if got != want {
			t.Fatalf("sums %+v, the twin's %+v", got, want)
		}
	})
}

// The cost is that of rounding to nearest in float64, and the optimal scale costs no more.
func TestRoundCostIsSquaredError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		const stride = 11
		x, weight, g := rounding(r, 64, stride)
		var s RoundSums
		RoundCost(&s, x, stride, weight, g)
		for j := range RoundLanes {
			cost, better := 0.0, 0.0
			for i, w := range weight {
				v := float64(x[i*stride+j])
				code := min(max(math.RoundToEven(float64(x[i*stride+j]*g.Inverse[j])), float64(g.Low[j])), float64(g.High[j]))
				d, b := v-code*float64(g.Scale[j]), v-code*float64(s.Dot[j])/max(float64(s.Square[j]), 1e-30)
				cost, better = cost+float64(w)*d*d, better+float64(w)*b*b
			}
			if math.Abs(cost-float64(s.Cost[j])) > 1e-5*cost+1e-30 || better > cost*(1+1e-5) {
				t.Fatalf("column %d costs %v, with the better scale %v, want %v", j, s.Cost[j], better, cost)
			}
		}
	}
}

func TestRoundCostPanicsOnShortSlices(t *testing.T) {
	if !panics(func() { RoundCost(&RoundSums{}, make([]float32, 15), 8, make([]float32, 2), &RoundGrid{}) }) {
		t.Error("short columns are accepted")
	}
}

func BenchmarkRoundCost(b *testing.B) {
	x, weight, g := rounding(rand.New(rand.NewPCG(3, 4)), 32, 128)
	b.SetBytes(4 * 32 * RoundLanes)
	for b.Loop() {
		RoundCost(&RoundSums{}, x, 128, weight, g)
	}
}
