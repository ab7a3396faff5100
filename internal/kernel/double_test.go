package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// doubles are a product of float64: a is m×k, b is k×n, c is m×ldc.
type doubles struct {
	m, n, k, ldc int
	a, b, c      []float64
}

func newDoubles(r *rand.Rand, m, n, k int) *doubles {
	d := &doubles{m: m, n: n, k: k, ldc: n + r.IntN(3)}
	for _, x := range []struct {
		to *[]float64
		n  int
	}{{&d.a, m * k}, {&d.b, k * n}, {&d.c, m * d.ldc}} {
		*x.to = make([]float64, x.n)
		for i := range *x.to {
			(*x.to)[i] = r.NormFloat64()
		}
	}
	return d
}

// run returns the kernel's c, with a and b packed directly or, if turned, from their transposes.
func (d *doubles) run(turned bool) []float64 {
	a, aRow, aCol, b, bRow, bCol := d.a, d.k, 1, d.b, 1, d.n
	if turned {
		a, aRow, aCol, b, bRow, bCol = flipped(d.a, d.m, d.k), 1, d.m, flipped(d.b, d.k, d.n), d.k, 1
	}
	left, right := make([]float64, grouped(d.m, DoubleRows)*d.k), make([]float64, grouped(d.n, DoublePanel)*d.k)
	PackDouble(left, DoubleRows, a, aRow, aCol, d.m, d.k, 1)
	PackDouble(right, DoublePanel, b, bRow, bCol, d.n, d.k, 1)
	c := append([]float64(nil), d.c...)
	GemmDouble(c, d.ldc, left, right, d.m, d.n, d.k)
	return c
}

// flipped is the transpose of a row-major matrix.
func flipped(x []float64, rows, cols int) []float64 {
	t := make([]float64, len(x))
	for i := range x {
		t[i%cols*rows+i/cols] = x[i]
	}
	return t
}

// check compares every element with the definition bit for bit: a chain of fused multiply-adds.
func (d *doubles) check(t *testing.T, got []float64) {
	t.Helper()
	for at, g := range got {
		i, j, want := at/d.ldc, at%d.ldc, 0.0
		for k := 0; k < d.k && j < d.n; k++ {
			want = math.FMA(d.a[i*d.k+k], d.b[k*d.n+j], want)
		}
		if want += d.c[at]; math.Float64bits(g) != math.Float64bits(want) {
			t.Fatalf("%d×%d×%d: c[%d][%d] is %v, want %v", d.m, d.n, d.k, i, j, g, want)
		}
	}
}

func FuzzGemmDouble(f *testing.F) {
	f.Add(uint64(1), uint8(7), uint8(33), uint8(5), false)
	f.Add(uint64(2), uint8(12), uint8(16), uint8(0), true)
	f.Add(uint64(3), uint8(1), uint8(1), uint8(255), true)
	f.Add(uint64(4), uint8(18), uint8(64), uint8(31), false)
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint8, turned bool) {
		d := newDoubles(rand.New(rand.NewPCG(seed, 0)), 1+int(m%40), 1+int(n), int(k))
		d.check(t, d.run(turned))
	})
}

// The assembly is bit-identical to its twin, also if sums overflow, cancel or are NaN.
func TestDoubleTileIsItsTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	odd := []float64{0, math.Copysign(0, -1), math.Inf(1), math.NaN(), math.MaxFloat64, 5e-324, 1e-300}
	for range 200 {
		d := newDoubles(r, DoubleRows, DoublePanel, 1+r.IntN(70))
		d.a[r.IntN(len(d.a))], d.b[r.IntN(len(d.b))] = odd[r.IntN(len(odd))], odd[r.IntN(len(odd))]
		var got, want [DoubleRows * DoublePanel]float64
		if !doubleBulk(got[:], DoublePanel, d.a, d.b, false) {
			t.Skip("no vector instructions here")
		}
		doubleTileGo(&want, d.a, d.b)
		for i := range got {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
				t.Fatalf("sum %d is %v, its twin's %v", i, got[i], want[i])
			}
		}
	}
}

func TestPackDoubleMultiplies(t *testing.T) {
	dst := []float64{9, 9, 9, 9, 9, 9}
	PackDouble(dst, 3, []float64{1, 2, 3, 4}, 2, 1, 2, 2, -2)
	want := []float64{-2, -6, 0, -4, -8, 0}
	for i := range want {
		if dst[i] != want[i] {
			t.Fatalf("packed %v, want %v", dst, want)
		}
	}
}

func TestGemmDoublePanicsOnShortSlices(t *testing.T) {
	x := make([]float64, 48)
	for name, call := range map[string]func(){
		"a":   func() { GemmDouble(x, 8, x[:11], x, 6, 8, 2) },
		"b":   func() { GemmDouble(x, 8, x, x[:15], 6, 8, 2) },
		"c":   func() { GemmDouble(x[:47], 8, x, x, 6, 8, 2) },
		"dst": func() { PackDouble(x[:11], 6, x, 1, 6, 5, 2, 1) },
		"src": func() { PackDouble(x, 6, x[:10], 1, 6, 5, 2, 1) },
	} {
		if !panics(call) {
			t.Errorf("a short %s is accepted", name)
		}
	}
}

func BenchmarkGemmDouble(b *testing.B) {
	const m, n, k = 96, 512, 256
	d := newDoubles(rand.New(rand.NewPCG(3, 4)), m, n, k)
	left, right := make([]float64, m*k), make([]float64, n*k)
	PackDouble(left, DoubleRows, d.a, k, 1, m, k, 1)
	PackDouble(right, DoublePanel, d.b, 1, n, n, k, 1)
	b.Run("multiply", func(b *testing.B) {
		for b.Loop() {
			GemmDouble(d.c, d.ldc, left, right, m, n, k)
		}
		b.ReportMetric(2*m*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
	b.Run("pack rows", func(b *testing.B) {
		b.SetBytes(8 * m * k)
		for b.Loop() {
			PackDouble(left, DoubleRows, d.a, k, 1, m, k, 1)
		}
	})
	b.Run("pack columns", func(b *testing.B) {
		b.SetBytes(8 * n * k)
		for b.Loop() {
			PackDouble(right, DoublePanel, d.b, 1, n, n, k, 1)
		}
	})
}
