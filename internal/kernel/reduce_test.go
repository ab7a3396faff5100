package kernel

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exact is the sum of f of each element without any rounding but the last.
func exact(n int, f func(i int) (a, b float64)) float64 {
	total := new(big.Float).SetPrec(2000)
	for i := range n {
		a, b := f(i)
		product := new(big.Float).SetPrec(200).Mul(big.NewFloat(a), big.NewFloat(b))
		total.Add(total, product)
	}
	sum, _ := total.Float64()
	return sum
}

// finite is x with elements that are not of moderate size replaced.
func finite(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		if m := math.Abs(float64(v)); m < 1e15 {
			y[i] = v
		}
	}
	return y
}

// wantNear tolerates the roundings of n additions in float64.
func wantNear(t *testing.T, name string, got, want, magnitude float64, n int) {
	t.Helper()
	if d := math.Abs(got - want); !(d <= magnitude*float64(n)*0x1p-53) {
		t.Fatalf("%s of %d elements: got %g, want %g", name, n, got, want)
	}
}

func TestSumsAreNearTheExactOnes(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		x = finite(x)
		n, size := len(x), 0.0
		for _, v := range x {
			size += math.Abs(float64(v))
		}
		sum := exact(n, func(i int) (float64, float64) { return float64(x[i]), 1 })
		wantNear(t, "ReduceSum", ReduceSum(x), sum, size, n)
		square := exact(n, func(i int) (float64, float64) { return float64(x[i]), float64(x[i]) })
		wantNear(t, "ReduceSumSquare", ReduceSumSquare(x), square, square, n)
		dot := exact(n, func(i int) (float64, float64) { return float64(x[i]), float64(x[n-1-i]) })
		y := make([]float32, n)
		for i := range y {
			y[i] = x[n-1-i]
		}
		wantNear(t, "Dot", Dot(x, y), dot, square, n)
	})
}

func TestMeanVarianceOfNumbersFarFromZero(t *testing.T) {
	x := make([]float32, 1000)
	for i := range x {
		x[i] = 1e6 + float32(i%2)
	}
	mean, variance := MeanVariance(x)
	if mean != 1e6+0.5 || variance != 0.25 {
		t.Errorf("got %v and %v, want 1000000.5 and 0.25", mean, variance)
	}
}

func checkSums(t *testing.T, x []float32) {
	t.Helper()
	var sum, dot, squares sumLanes
	sum.addGo(x)
	dot.addProductsGo(x, x)
	squares.addSquaresGo(x, 0.25)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"ReduceSum", ReduceSum(x), sum.fold()},
		{"Dot", Dot(x, x), dot.fold()},
		{"squaresAbout", squaresAbout(x, 0.25), squares.fold()},
	} {
		if math.Float64bits(c.got) != math.Float64bits(c.want) && (c.got == c.got || c.want == c.want) {
			t.Fatalf("%s of %d elements: got %g, want %g", c.name, len(x), c.got, c.want)
		}
	}
}

func TestSumsEqualTheirTwins(t *testing.T) { eachSample(t, checkSums) }

func FuzzSums(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkSums(t, x) })
}

func TestReduceMaxAndMin(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		least, most := float32(math.Inf(1)), float32(math.Inf(-1))
		for _, v := range x {
			least, most = min(least, v), max(most, v)
		}
		wantFloats(t, []float32{ReduceMin(x), ReduceMax(x)}, []float32{least, most})
	})
}

func TestReduceMaxFindsNaNOfEitherSign(t *testing.T) {
	for _, b := range []uint32{0x7fc00000, 0xffc00000} {
		x := make([]float32, 20)
		x[13] = math.Float32frombits(b)
		if most, least := ReduceMax(x), ReduceMin(x); most == most || least == least {
			t.Errorf("%#08x: got %g and %g", b, most, least)
		}
	}
}

// Products with rows are those of Dot with each row.
func TestDotRows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 400 {
		k, n := r.IntN(40)*(1+r.IntN(8)), r.IntN(30)
		stride := k + r.IntN(20)
		a, rows, got := gaussian(r, k), gaussian(r, n*stride+k), make([]float32, n)
		factor := r.Float32()
		DotRows(got, a, rows, stride, factor)
		for j, g := range got {
			var l sumLanes
			l.addProductsGo(a, rows[j*stride:][:k])
			if want := factor * float32(l.fold()); g != want {
				t.Fatalf("%d elements, row %d of %d: %v, want %v", k, j, n, g, want)
			}
		}
	}
}

func TestDotRowsPanicsOnShortRows(t *testing.T) {
	if !panics(func() { DotRows(make([]float32, 4), make([]float32, 8), make([]float32, 31), 8, 1) }) {
		t.Error("short rows are accepted")
	}
}

func BenchmarkDotRows(b *testing.B) {
	for _, k := range []int{16, 64, 128} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			a, keys, dst := make([]float32, k), make([]float32, 512*k), make([]float32, 512)
			b.SetBytes(int64(4 * len(keys)))
			for b.Loop() {
				DotRows(dst, a, keys, k, 1)
			}
		})
	}
}
