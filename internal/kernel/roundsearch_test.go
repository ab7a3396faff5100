package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// rounding is a call of RoundSearch with numbers of many magnitudes.
func rounding(r *rand.Rand, rows, stride int) (x, weight []float32, s RoundSpace) {
	x, weight = gaussian(r, (rows-1)*stride+RoundLanes), make([]float32, rows)
	for i := range weight {
		weight[i] = r.Float32() * float32(i%3)
	}
	for i := range x {
		x[i] *= float32(math.Ldexp(1, r.IntN(40)-20))
		if i%7 == 0 {
			x[i] = float32(r.IntN(9)) / 2 // exactly between two levels
		}
	}
	s = RoundSpace{Low: float32(-r.IntN(9)), High: float32(1 + r.IntN(9)), Symmetric: r.IntN(2) == 0,
		Refits: 1 + r.IntN(3)}
	for range 1 + r.IntN(12) {
		s.Fractions = append(s.Fractions, 0.3+r.Float32())
	}
	if s.Symmetric {
		s.Middle = float32(math.Floor(float64(s.Low+s.High+1) / 2))
	}
	return x, weight, s
}

// equalRounding compares the columns whose range is not 0.
func equalRounding(a, b RoundResult) bool {
	for j := range RoundLanes {
		if a.Low[j] == 0 && a.High[j] == 0 {
			for _, r := range []*RoundResult{&a, &b} {
				r.Least[j], r.Scale[j], r.Zero[j] = 0, 0, 0
			}
		}
	}
	return a == b
}

func FuzzRoundSearch(f *testing.F) {
	f.Add(uint64(1), uint8(32), uint8(8))
	f.Add(uint64(2), uint8(1), uint8(100))
	f.Add(uint64(3), uint8(0), uint8(9))
	f.Add(uint64(4), uint8(128), uint8(112))
	f.Fuzz(func(t *testing.T, seed uint64, rows, stride uint8) {
		x, weight, s := rounding(rand.New(rand.NewPCG(seed, 0)), 1+int(rows), RoundLanes+int(stride))
		var got, want RoundResult
		RoundSearch(&got, x, RoundLanes+int(stride), weight, s)
		roundSearchGo(&want, x, RoundLanes+int(stride), weight, s)
		if !equalRounding(got, want) {
			t.Fatalf("%+v, the twin's %+v", got, want)
		}
	})
}

func TestRoundSearchOfManySizes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		rows, stride := 1+r.IntN(70), RoundLanes+r.IntN(150)
		x, weight, s := rounding(r, rows, stride)
		var got, want RoundResult
		RoundSearch(&got, x, stride, weight, s)
		roundSearchGo(&want, x, stride, weight, s)
		if !equalRounding(got, want) {
			t.Fatalf("%d rows, %+v: %+v, the twin's %+v", rows, s, got, want)
		}
	}
}

// Least is the cost of the scales in float64, and those of the full range cost no less.
func TestRoundSearchIsSquaredError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		const stride = 19
		x, weight, s := rounding(r, 64, stride)
		s.Fractions[0] = 1
		cost := func(j int, scale, zero float32) (sum float64) {
			for i, w := range weight {
				v := float64(x[i*stride+j])
				q := min(max(math.RoundToEven(float64(float32(x[i*stride+j]*(1/scale)))), float64(s.Low-zero)),
					float64(s.High-zero))
				d := v - q*float64(scale)
				sum += float64(w) * d * d
			}
			return sum
		}
		var got RoundResult
		RoundSearch(&got, x, stride, weight, s)
		for j := range RoundLanes {
			if got.Low[j] == 0 && got.High[j] == 0 {
				continue
			}
			least, full := cost(j, got.Scale[j], got.Zero[j]), 0.0
			scale, zero := s.over(got.Low[j], got.High[j])
			if full = cost(j, scale, zero); math.Abs(least-float64(got.Least[j])) > 1e-5*least+1e-30 ||
				least > full*(1+1e-5) {
				t.Fatalf("column %d costs %v, %v in float64, with the full range %v", j, got.Least[j], least, full)
			}
		}
	}
}

func TestRoundSearchPanics(t *testing.T) {
	x, weight, s := rounding(rand.New(rand.NewPCG(3, 4)), 2, RoundLanes)
	for name, f := range map[string]func(){
		"short columns": func() { RoundSearch(&RoundResult{}, x[1:], RoundLanes, weight, s) },
		"no rows":       func() { RoundSearch(&RoundResult{}, x, RoundLanes, nil, s) },
		"no refits":     func() { s.Refits = 0; RoundSearch(&RoundResult{}, x, RoundLanes, weight, s) },
	} {
		if !panics(f) {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzRoundErrors(f *testing.F) {
	f.Add(uint64(1), uint8(128))
	f.Add(uint64(2), uint8(13))
	f.Add(uint64(3), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		cols := int(n)
		x, w, scale, zero := gaussian(r, cols), gaussian(r, cols), gaussian(r, cols), make([]int32, cols)
		c := IntRange{Lo: int32(r.IntN(2)) * -128}
		c.Hi = c.Lo + 15 + 240*int32(r.IntN(2))
		for j := range zero {
			zero[j] = c.Lo + r.Int32N(c.Hi-c.Lo+1)
			x[j] *= float32(math.Ldexp(1, r.IntN(20)-8))
		}
		got, want, gotErrors, wantErrors := make([]byte, cols), make([]byte, cols), make([]float32, cols),
			make([]float32, cols)
		RoundErrors(got, gotErrors, x, w, scale, zero, c)
		roundErrorsGo(want, wantErrors, x, w, scale, zero, c)
		if !slices.Equal(got, want) || !slices.Equal(gotErrors, wantErrors) {
			t.Fatalf("%v %v, the twin's %v %v", got, gotErrors, want, wantErrors)
		}
	})
}

func TestRoundErrorsPanicsOnShortSlices(t *testing.T) {
	x, zero := make([]float32, 9), make([]int32, 9)
	if !panics(func() { RoundErrors(make([]byte, 9), x, x, x[1:], x, zero, IntRange{Hi: 15}) }) {
		t.Error("a short row is accepted")
	}
}

func BenchmarkRoundSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	x, weight, s := rounding(r, 32, 128)
	s.Fractions, s.Refits, s.Symmetric = gaussian(r, 12), 2, false
	b.SetBytes(4 * 32 * RoundLanes)
	for b.Loop() {
		RoundSearch(&RoundResult{}, x, 128, weight, s)
	}
}
