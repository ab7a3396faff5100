package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// intProduct is a product of 8-bit matrices.
type intProduct struct {
	m, n, k, ldc int
	add          bool
	signed       bool
	zero         int32
	a, b         []byte // row-major: m×k, k×n
	c            []int32
	row          []int32 // first sums of every row, if not nil, instead of c
}

func newIntProduct(r *rand.Rand, m, n, k int) *intProduct {
	p := &intProduct{m: m, n: n, k: k, ldc: n + r.IntN(3), add: r.IntN(2) == 1, signed: r.IntN(2) == 1}
	p.a, p.b, p.c = randomBytes(r, m*k), randomBytes(r, k*n), make([]int32, m*p.ldc)
	for i := range p.c {
		p.c[i] = int32(r.Uint32())
	}
	p.zero = int32(r.IntN(256))
	if p.signed {
		p.zero -= 128
	}
	return p
}

// randomBytes has many extreme values: sums of their products exceed 16 bits.
func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
		if r.IntN(2) == 0 {
			b[i] = []byte{0, 0x7f, 0x80, 0xff}[r.IntN(4)]
		}
	}
	return b
}

// kernel returns the call for p, with its own c and elements of b as int8, and the remaining offset of a.
func (p *intProduct) kernel(width int) (g *gemmInt, left int32) {
	k4 := (p.k + GemmQuad - 1) / GemmQuad * GemmQuad
	g = &gemmInt{c: slices.Clone(p.c), ldc: p.ldc, first: p.row, lda: k4 * width, width: width, panel: k4 * GemmPanel,
		m: p.m, n: p.n, k: k4}
	if p.row == nil {
		g.first, g.ldFirst = addedTo(g.c, g.ldc, p.add)
	}
	g.a, g.b = make([]byte, p.m*g.lda), make([]byte, (p.n+GemmPanel-1)/GemmPanel*g.panel)
	for i := range p.m {
		dst, src := g.a[i*g.lda:][:p.k*width], p.a[i*p.k:][:p.k]
		if width == 1 {
			_, left = flipRow(dst, src, p.signed, p.zero)
		} else {
			widenRows(dst, 0, src, 0, p.k, p.signed, p.zero, make([]int32, 1))
		}
	}
	PackQuads(g.b, g.panel, p.b, p.n, 1, p.k, p.n, 0)
	return g, left
}

func (p *intProduct) want(i, j int) int32 {
	var sum int32
	switch {
	case p.row != nil:
		sum = p.row[j]
	case p.add:
		sum = p.c[i*p.ldc+j]
	}
	for k := range p.k {
		sum += (element(p.a[i*p.k+k], p.signed) - p.zero) * int32(int8(p.b[k*p.n+j]))
	}
	return sum
}

// check compares with the definition, after subtracting the remaining offset.
func (p *intProduct) check(t *testing.T, g *gemmInt, left int32) {
	t.Helper()
	sums := make([]int32, p.n)
	QuadSums(sums, g.b, g.panel, g.k)
	for at, got := range g.c {
		i, j := at/p.ldc, at%p.ldc
		want := p.c[at]
		if j < p.n {
			want, got = p.want(i, j), got-left*sums[j]
		}
		if got != want {
			t.Fatalf("c[%d][%d] is %d, want %d", i, j, got, want)
		}
	}
}

func FuzzGemmInt(f *testing.F) {
	for i := range uint8(20) {
		f.Add(uint64(i), i*7, i*31, i*13)
	}
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint8) {
		p := newIntProduct(rand.New(rand.NewPCG(seed, 0)), 1+int(m%40), 1+int(n), int(k))
		if seed%3 == 0 {
			p.row = slices.Clone(p.c[:p.n])
		}
		g, left := p.kernel(GemmIntWidth())
		GemmInt(g.c, g.ldc, g.first, g.ldFirst, g.a, g.lda, g.b, g.panel, g.m, g.n, g.k)
		p.check(t, g, left)
		for width := 1; width <= 2; width++ {
			twin, left := p.kernel(width)
			twin.plain()
			p.check(t, twin, left)
		}
	})
}

func TestPackQuadsInBothOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		k, n, flip := 1+r.IntN(40), 1+r.IntN(40), byte(r.IntN(2)*0x80)
		rows, columns := randomBytes(r, k*n), make([]byte, k*n)
		for i := range rows {
			columns[i%n*k+i/n] = rows[i]
		}
		panel := (k + 3) / 4 * 64
		got, transposed := make([]byte, (n+15)/16*panel), make([]byte, (n+15)/16*panel)
		PackQuads(got, panel, rows, n, 1, k, n, flip)
		PackQuads(transposed, panel, columns, 1, k, k, n, flip)
		for i := range got {
			j, step := i/panel*16+i%64/4, i%panel/64*4+i%4
			want := byte(0)
			if j < n && step < k {
				want = rows[step*n+j] ^ flip
			}
			if got[i] != want || transposed[i] != want {
				t.Fatalf("%d×%d: byte %d is %d by rows, %d by columns, want %d", k, n, i, got[i], transposed[i], want)
			}
		}
	}
}

// Rows are widened, or flipped, like by their twins, also from the end of the rows that they become.
func TestGemmIntRowsAreTheTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := 1; n < 100; n++ {
		for _, signed := range []bool{false, true} {
			const rows = 3
			zero, from, to := int32(r.IntN(128)), n+r.IntN(5), 2*n+r.IntN(5)
			src, inPlace := randomBytes(r, rows*from), make([]byte, rows*to)
			got, want := make([]byte, rows*to), make([]byte, rows*to)
			var gotSums, inPlaceSums, wantSums [rows]int32
			for i := range rows {
				copy(inPlace[i*to+n:], src[i*from:][:n])
				wantSums[i] = widenGo(want[i*to:], src[i*from:][:n], signed, zero)
			}
			widenRows(got, to, src, from, n, signed, zero, gotSums[:])
			widenRows(inPlace, to, inPlace[n:], to, n, signed, zero, inPlaceSums[:])
			if gotSums != wantSums || inPlaceSums != wantSums || !slices.Equal(got, want) ||
				!slices.Equal(inPlace, want) {
				t.Errorf("%d elements, signed %v: widened to %v with sums %d, in place %v with %d, want %v with %d",
					n, signed, got, gotSums, inPlace, inPlaceSums, want, wantSums)
			}
			flipped := make([]byte, n)
			sum, left := flipRow(flipped, src[:n], signed, zero)
			for i, b := range flipped {
				if want := byte(element(src[i], signed) - zero + left); b != want || sum != wantSums[0] {
					t.Errorf("%d elements, signed %v: element %d is flipped to %d with sum %d, want %d with %d", n,
						signed, i, b, sum, want, wantSums[0])
				}
			}
		}
	}
}

func element(b byte, signed bool) int32 {
	if signed {
		return int32(int8(b))
	}
	return int32(b)
}

// halvePairs halves the elements of pairs that do not fit.
func (p *intProduct) halvePairs() {
	for j := range p.n {
		for k := 0; k+1 < p.k; k += 2 {
			if x, y := &p.b[k*p.n+j], &p.b[(k+1)*p.n+j]; !PairFits(int8(*x), int8(*y)) {
				*x, *y = byte(int8(*x)/2), byte(int8(*y)/2)
			}
		}
	}
}

func FuzzGemmPairs(f *testing.F) {
	for i := range uint8(20) {
		f.Add(uint64(i), i*7, i*31, i*13)
	}
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint8) {
		p := newIntProduct(rand.New(rand.NewPCG(seed, 0)), 1+int(m%40), 1+int(n), int(k))
		p.halvePairs()
		g, left := p.kernel(1)
		GemmPairs(g.c, g.ldc, g.a, g.lda, g.b, g.panel, g.m, g.n, g.k, p.add)
		p.check(t, g, left)
	})
}

// Sums are requantized like those that are stored, from one first row or from first rows of their own.
func FuzzRequantizePairs(f *testing.F) {
	for i := range uint8(20) {
		f.Add(uint64(i), i*7, i*31, i*13, i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint8, signed, shared bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := newIntProduct(r, 1+int(m%40), 1+int(n), int(k))
		p.halvePairs()
		g, _ := p.kernel(1)
		q := Requantization{Scale: random(r, p.n), Bias: random(r, p.n), Zero: int32(r.IntN(100)),
			Levels: IntRange{3, 200}}
		if signed {
			q.Levels = IntRange{-128, 100}
		}
		for i := range q.Scale {
			q.Scale[i] *= 1e-2
		}
		ldFirst, to := p.n+r.IntN(3), p.n+r.IntN(9)
		if shared {
			ldFirst = 0
		}
		first, sums := make([]int32, (g.m-1)*ldFirst+g.n), make([]int32, g.m*g.n)
		for i := range first {
			first[i] = int32(r.IntN(2000)) - 1000
		}
		for i := range g.m {
			copy(sums[i*g.n:][:g.n], first[i*ldFirst:])
		}
		got, want := randomBytes(r, g.m*to), make([]byte, g.m*to)
		copy(want, got)
		GemmPairs(sums, g.n, g.a, g.lda, g.b, g.panel, g.m, g.n, g.k, true)
		for i := range g.m {
			requantizeGo(want[i*to:], sums[i*g.n:][:g.n], q)
		}
		RequantizePairs(got, to, q, first, ldFirst, make([]int32, g.m*g.n), g.a, g.lda, g.b, g.panel, g.m, g.k)
		if !slices.Equal(got, want) {
			t.Errorf("%d×%d×%d, shared first row %v: got %v, want %v", g.m, g.n, g.k, shared, got, want)
		}
	})
}

func TestPairFits(t *testing.T) {
	for x := -128; x < 128; x++ {
		for y := -128; y < 128; y++ {
			fits := true
			for _, a := range []int{0, 255} {
				for _, b := range []int{0, 255} {
					sum := a*x + b*y
					fits = fits && sum == int(int16(sum))
				}
			}
			if PairFits(int8(x), int8(y)) != fits {
				t.Errorf("weights %d and %d: PairFits is %v", x, y, !fits)
			}
		}
	}
}

// Rows are shuffled into their order, also in place.
func TestPairRows(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for n := 1; n < 100; n++ {
		whole := (n + PairWindow - 1) / PairWindow * PairWindow
		rows, signed, zero, from, to := 1+n%7, n%2 == 0, int32(r.IntN(128)), n+r.IntN(5), whole+r.IntN(5)
		src, order := randomBytes(r, (rows-1)*from+n), make([]byte, whole)
		for i := range order {
			order[i] = byte(i % PairWindow)
		}
		for at := 0; at < n; at += PairWindow {
			window := order[at:min(at+PairWindow, n)]
			r.Shuffle(len(window), func(i, j int) { window[i], window[j] = window[j], window[i] })
		}
		got, inPlace := make([]byte, rows*to), make([]byte, rows*to)
		sums := make([]int32, rows)
		for i := range rows {
			copy(inPlace[i*to:], src[i*from:][:n])
		}
		PairRows(got, to, src, from, rows, n, signed, order)
		PairRows(inPlace, to, inPlace, to, rows, n, signed, order)
		left := zero
		if signed {
			left += 128
		}
		PairSums(got, to, n, left, sums)
		for i := range rows {
			want, sum := make([]byte, n), int32(0)
			for at := range want {
				v := element(src[i*from+at/PairWindow*PairWindow+int(order[at])], signed) - zero
				want[at] = byte(v + left)
				sum += v
			}
			if got, inPlace := got[i*to:][:n], inPlace[i*to:][:n]; !slices.Equal(got, want) ||
				!slices.Equal(inPlace, want) || sums[i] != sum {
				t.Errorf("row %d of %d elements: %v with sum %d, in place %v, want %v with %d", i, n, got, sums[i],
					inPlace, want, sum)
			}
		}
	}
}

func TestQuadSumsIsTheTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, k := range []int{4, 8, 100} {
		for n := 1; n < 40; n += 5 {
			b, got := randomBytes(r, (n+15)/16*16*k), integers(r, n)
			want := slices.Clone(got)
			QuadSums(got, b, 16*k, k)
			quadSumsGo(want, b, 16*k, k)
			if !slices.Equal(got, want) {
				t.Errorf("%d×%d: %v, want %v", k, n, got, want)
			}
		}
	}
}

func TestLessIsTheTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for n := range 40 {
		y, x, lift, times := integers(r, n), integers(r, n), int32(r.Uint32()), int32(r.Uint32())
		got, want := slices.Clone(y), slices.Clone(y)
		Less(got, times)
		lessGo(want, times)
		if !slices.Equal(got, want) {
			t.Errorf("%d elements less one number: %v, want %v", n, got, want)
		}
		LessTimes(got, x, lift, times)
		lessTimesGo(want, x, lift, times)
		if !slices.Equal(got, want) {
			t.Errorf("%d elements less products: %v, want %v", n, got, want)
		}
	}
}

func integers(r *rand.Rand, n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(r.Uint32())
	}
	return x
}

func TestGemmIntPanicsOnShortSlices(t *testing.T) {
	p := newIntProduct(rand.New(rand.NewPCG(5, 6)), 7, 20, 12)
	for name, spoil := range map[string]func(g *gemmInt){
		"a":     func(g *gemmInt) { g.a = g.a[1:] },
		"b":     func(g *gemmInt) { g.b = g.b[1:] },
		"c":     func(g *gemmInt) { g.c = g.c[:6*g.ldc+19] },
		"k":     func(g *gemmInt) { g.k = 11 },
		"first": func(g *gemmInt) { g.first, g.ldFirst = make([]int32, 19), 0 },
	} {
		g, _ := p.kernel(GemmIntWidth())
		spoil(g)
		if !panics(func() { GemmInt(g.c, g.ldc, g.first, g.ldFirst, g.a, g.lda, g.b, g.panel, g.m, g.n, g.k) }) {
			t.Errorf("a wrong %s is accepted", name)
		}
	}
}

func BenchmarkGemmInt(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range []struct{ m, n, k int }{{1, 4096, 1024}, {2, 4096, 1024}, {4, 4096, 1024}, {6, 512, 256},
		{96, 512, 256}, {120, 512, 1024}, {128, 768, 768}} {
		for _, width := range []int{GemmIntWidth(), 1} {
			b.Run(fmt.Sprintf("%dx%dx%d/width=%d", s.m, s.n, s.k, width), func(b *testing.B) {
				g, _ := newIntProduct(r, s.m, s.n, s.k).kernel(width)
				best := math.Inf(1)
				for b.Loop() {
					from := time.Now()
					g.run()
					best = min(best, time.Since(from).Seconds())
				}
				b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)/best/1e9, "max-GOP/s")
			})
		}
	}
}
