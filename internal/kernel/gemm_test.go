package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// product is a matrix product in every layout of the kernel.
type product struct {
	m, n, k, ldc int
	add          bool
	a, b, c      []float32 // row-major: m×k, k×n, m×ldc
}

func newProduct(r *rand.Rand, m, n, k int) *product {
	p := &product{m: m, n: n, k: k, ldc: n + r.IntN(3), add: r.IntN(2) == 1}
	p.a, p.b, p.c = gaussian(r, m*k), gaussian(r, k*n), gaussian(r, m*p.ldc)
	return p
}

func gaussian(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// left is a as rows, as columns or packed into strips.
func (p *product) left(layout int) GemmA {
	high := GemmRows()
	switch layout {
	case 0:
		return GemmA{p.a, high * p.k, p.k, 1}
	case 1:
		t := make([]float32, len(p.a))
		for i := range p.a {
			t[i%p.k*p.m+i/p.k] = p.a[i]
		}
		return GemmA{t, high, 1, p.m}
	}
	packed := make([]float32, (p.m+high-1)/high*high*p.k)
	PackStrips(packed, p.a, p.k, 1, p.m, p.k)
	return GemmA{packed, high * p.k, 1, high}
}

// right is b as rows, if they are whole panels, or packed.
func (p *product) right(packed bool) GemmB {
	if !packed && p.n%GemmPanel == 0 {
		return GemmB{Data: p.b, Panel: GemmPanel, K: p.n}
	}
	panels := make([]float32, (p.n+GemmPanel-1)/GemmPanel*GemmPanel*p.k)
	PackPanels(panels, GemmPanel*p.k, p.b, p.n, 1, p.k, p.n)
	return GemmB{Data: panels, Panel: GemmPanel * p.k, K: GemmPanel}
}

// run returns the kernel's c.
func (p *product) run(left int, packed bool) []float32 {
	c := append([]float32(nil), p.c...)
	GemmFloat(c, p.ldc, p.left(left), p.right(packed), p.m, p.n, p.k, p.add)
	return c
}

// exact is the definition in float64, and an error bound for float32 in any order: k+1 roundings of sums that are at
// most the sum of magnitudes.
func (p *product) exact(i, j int) (want, bound float64) {
	if p.add {
		want = float64(p.c[i*p.ldc+j])
	}
	bound = math.Abs(want)
	for k := range p.k {
		x := float64(p.a[i*p.k+k]) * float64(p.b[k*p.n+j])
		want, bound = want+x, bound+math.Abs(x)
	}
	return want, bound * float64(p.k+1) / (1 << 23)
}

func (p *product) check(t *testing.T, got []float32) {
	t.Helper()
	for at, g := range got {
		i, j := at/p.ldc, at%p.ldc
		if j >= p.n {
			if g != p.c[at] {
				t.Fatalf("row %d was written beyond its end", i)
			}
			continue
		}
		if want, bound := p.exact(i, j); math.Abs(float64(g)-want) > bound {
			t.Fatalf("c[%d][%d] is %v, want %v within %v", i, j, g, want, bound)
		}
	}
}

func TestGemmFloatIsTheProductInEveryLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		p := newProduct(r, 1+r.IntN(30), 1+r.IntN(80), r.IntN(40))
		t.Run(fmt.Sprintf("%dx%dx%d", p.m, p.n, p.k), func(t *testing.T) {
			first := p.run(0, true)
			p.check(t, first)
			for left := range 3 {
				for _, packed := range []bool{false, true} {
					if got := p.run(left, packed); !equalBits(got, first) {
						t.Fatalf("layout %d, packed %v: not bit-identical", left, packed)
					}
				}
			}
		})
	}
}

func equalBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// A row must depend neither on the number of rows nor on its tile.
func TestGemmFloatRowsAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all := newProduct(r, 27, 90, 33)
	want := all.run(0, true)
	for m := 1; m < all.m; m++ {
		part := *all
		part.m, part.a, part.c = m, all.a[:m*all.k], all.c[:m*all.ldc]
		if got := part.run(0, true); !equalBits(got, want[:m*all.ldc]) {
			t.Errorf("%d rows: not bit-identical to a part of %d", m, all.m)
		}
	}
}

func FuzzGemmFloat(f *testing.F) {
	f.Add(uint64(1), uint8(7), uint8(33), uint8(5), uint8(2))
	f.Add(uint64(2), uint8(13), uint8(1), uint8(0), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k, layout uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := newProduct(r, 1+int(m%40), 1+int(n), int(k))
		c, left, right := append([]float32(nil), p.c...), p.left(int(layout%3)), p.right(layout%2 == 0)
		twin := gemm{append([]float32(nil), p.c...), p.ldc, left, right, p.m, p.n, p.k, p.add}
		GemmFloat(c, p.ldc, left, right, p.m, p.n, p.k, p.add)
		if p.k > 0 {
			twin.plain()
			p.check(t, twin.c)
		}
		p.check(t, c)
	})
}

func TestGemmFloatPanicsOnShortSlices(t *testing.T) {
	p := newProduct(rand.New(rand.NewPCG(5, 6)), 8, 32, 9)
	for name, call := range map[string]func(){
		"a": func() {
			GemmFloat(p.c, p.ldc, GemmA{p.a[:len(p.a)-1], GemmRows() * p.k, p.k, 1}, p.right(false), 8, 32, 9, false)
		},
		"b": func() {
			GemmFloat(p.c, p.ldc, p.left(0), GemmB{Data: p.b[:len(p.b)-1], Panel: 16, K: 32}, 8, 32, 9, false)
		},
		"c": func() { GemmFloat(p.c[:7*p.ldc+31], p.ldc, p.left(0), p.right(false), 8, 32, 9, false) },
	} {
		if !panics(call) {
			t.Errorf("a short %s is accepted", name)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func BenchmarkGemmFloat(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range []struct{ m, n, k int }{{1, 4096, 256}, {2, 4096, 256}, {4, 4096, 256}, {6, 512, 256},
		{96, 512, 64}, {96, 512, 256}, {192, 1024, 512}} {
		p := newProduct(r, s.m, s.n, s.k)
		for left, name := range []string{"rows", "columns", "strips"} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", s.m, s.n, s.k, name), func(b *testing.B) {
				x, y := p.left(left), p.right(true)
				for b.Loop() {
					GemmFloat(p.c, p.ldc, x, y, s.m, s.n, s.k, false)
				}
				flops := 2 * float64(s.m) * float64(s.n) * float64(s.k) * float64(b.N)
				b.ReportMetric(flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// The product of a row is bit-identical for packed and unpacked operands.
func TestGemvFloat(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		p := newProduct(r, 1, 1+r.IntN(2200), r.IntN(30))
		p.add = false
		got := make([]float32, p.n)
		GemvFloat(got, p.a, 1, p.b, p.n, p.k)
		if want := p.run(0, true)[:p.n]; !equalBits(got, want) {
			t.Errorf("%d×%d: not bit-identical to packed", p.k, p.n)
		}
	}
}
