package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sparseProduct is a sparse matrix in both forms and a dense one.
type sparseProduct struct {
	product // a is the sparse matrix with its zeros, c is rows of SparseStride
	rows    *SparseRows
}

// newSparseProduct draws m×k elements, a fraction density of which is not zero: values of type t times scales.
func newSparseProduct(r *rand.Rand, m, n, k int, density float64, t SparseType) *sparseProduct {
	p := &sparseProduct{product: *newProduct(r, m, n, k)}
	p.ldc = SparseStride(n)
	p.c = gaussian(r, (m+SparseQuad)*p.ldc)
	v, stored := SparseValues{Type: t}, append([]float32(nil), p.a...)
	if t != SparseFloat {
		v.Scales = gaussian(r, SparseLimit)
	}
	for i := range p.a {
		switch {
		case r.Float64() >= density:
			stored[i] = 0
		case t != SparseFloat: // float16 and int8 represent it
			stored[i] = float32(r.IntN(256) - 128)
		}
		p.a[i] = stored[i]
		if t != SparseFloat {
			p.a[i] *= v.Scales[i/k]
		}
	}
	quads := (m + SparseQuad - 1) / SparseQuad
	p.rows = NewSparseRows(k, 0, 0, v)
	if r.IntN(2) == 0 { // with the memory that vectors need
		p.rows = NewSparseRows(k, quads, quads*SparseQuad*k, v)
	}
	order := r.Perm(quads * SparseQuad)
	slices.SortStableFunc(order, func(i, j int) int { return p.count(i) - p.count(j) })
	for i := 0; i < len(order); i += SparseQuad {
		var cols [SparseQuad][]int32
		var values [SparseQuad][]float32
		for j, row := range order[i : i+SparseQuad] {
			for at := range k {
				if row < m && p.a[row*k+at] != 0 {
					cols[j], values[j] = append(cols[j], int32(at)), append(values[j], stored[row*k+at])
				}
			}
		}
		p.rows.Append([SparseQuad]int(order[i:]), 0, cols, values)
	}
	return p
}

// count is the number of nonzero elements of a row.
func (p *sparseProduct) count(row int) (n int) {
	for k := range p.k {
		if row < p.m && p.a[row*p.k+k] != 0 {
			n++
		}
	}
	return n
}

// run returns sums of multiply.
func (p *sparseProduct) run(multiply func(sums, x []float32, panel, cols int, add bool)) []float32 {
	sums, x := append([]float32(nil), p.c...), p.b
	if p.n > 1 {
		x = p.right(true).Data
	}
	multiply(sums, x, GemmPanel*p.k, p.n, p.add)
	for i := range sums { // surplus columns and rows are undefined
		if i%p.ldc >= p.n || i/p.ldc >= p.m {
			sums[i] = p.c[i]
		}
	}
	return sums
}

// A sparse product is bit-identical to the dense one, on a CPU with FMA and in the twins.
func (p *sparseProduct) check(t *testing.T) {
	t.Helper()
	fast, plain := p.dense()
	for i, v := range p.a {
		if got := p.rows.At(i/p.k, i%p.k); got != v {
			t.Fatalf("element %d is %v, want %v", i, got, v)
		}
	}
	multiply := func(sums, x []float32, panel, cols int, add bool) {
		p.rows.Multiply(sums, x, panel, cols, add, make([]float32, SparseWork))
	}
	if got := p.run(multiply); !equalBits(got, fast) {
		t.Fatalf("%d×%d×%d, add %v: not bit-identical to the dense product", p.m, p.n, p.k, p.add)
	}
	if got := p.run(p.quads().plain); !equalBits(got, plain) {
		t.Fatalf("%d×%d×%d, add %v: the twin is not bit-identical to that of the dense product", p.m, p.n, p.k, p.add)
	}
}

// dense is the dense product, and that of its twin.
func (p *sparseProduct) dense() (fast, plain []float32) {
	twin := gemm{append([]float32(nil), p.c...), p.ldc, p.left(0), p.right(true), p.m, p.n, p.k, p.add}
	dense := twin
	dense.c = append([]float32(nil), p.c...)
	if !dense.bulk() {
		dense.plain()
	}
	twin.plain()
	return dense.c, twin.c
}

// quads are the quads with all values decoded.
func (p *sparseProduct) quads() sparseQuads {
	q := p.rows.sparseQuads
	if p.rows.Type != SparseFloat {
		q.values = make([]float32, len(p.rows.stored)/p.rows.Type.size())
		q.decodePlain(p.rows.stored, p.rows.Type, p.rows.Scales)
	}
	return q
}

// checkAt is check with rows of the dense matrix in the reverse order, and apart.
func (p *sparseProduct) checkAt(t *testing.T) {
	t.Helper()
	apart := p.n + 3
	x, at := make([]float32, p.k*apart+p.ldc), make([]int32, p.k)
	for k := range p.k {
		at[k] = int32((p.k - 1 - k) * apart)
		copy(x[at[k]:], p.b[k*p.n:][:p.n])
	}
	fast, plain := p.dense()
	multiply := func(sums, _ []float32, _, _ int, add bool) {
		p.rows.MultiplyAt(sums, x, NewSparseOffsets(at), p.ldc, add, make([]float32, SparseWork))
	}
	if got := p.run(multiply); !equalBits(got, fast) {
		t.Fatalf("%d×%d×%d, add %v: not bit-identical to the dense product", p.m, p.n, p.k, p.add)
	}
	twin := func(sums, _ []float32, _, _ int, add bool) { p.quads().plainAt(sums, x, at, p.ldc, add) }
	if got := p.run(twin); !equalBits(got, plain) {
		t.Fatalf("%d×%d×%d, add %v: the twin is not bit-identical to that of the dense product", p.m, p.n, p.k, p.add)
	}
}

var sparseTypes = []SparseType{SparseFloat, SparseHalf, SparseInt8}

func TestSparseRowsMultiply(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= SparseCols; n++ {
		for _, density := range []float64{0, 0.1, 1} {
			for _, values := range sparseTypes {
				newSparseProduct(r, 1+r.IntN(30), n, 1+r.IntN(SparseDepth), density, values).check(t)
			}
		}
	}
	newSparseProduct(r, SparseLimit, SparseCols, SparseDepth, 0.1, SparseInt8).check(t)
}

func TestSparseRowsMultiplyAt(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := 2; n <= SparseWide(); n++ {
		for _, density := range []float64{0, 0.1, 1} {
			for _, values := range sparseTypes {
				newSparseProduct(r, 1+r.IntN(30), n, 1+r.IntN(SparseDepth), density, values).checkAt(t)
			}
		}
	}
}

// Padding must not read outside of x, and a zero that is stored gives NaN for an infinite x as in a dense product.
func TestSparseRowsSkipZeros(t *testing.T) {
	s := NewSparseRows(2, 1, SparseQuad, SparseValues{})
	s.Append([SparseQuad]int{0, 1, 2, 3}, 0, [SparseQuad][]int32{{1}, {}, {}, {}},
		[SparseQuad][]float32{{2}, {}, {}, {}})
	sums := make([]float32, SparseQuad)
	s.Multiply(sums, []float32{3, 5}, 0, 1, false, nil)
	if sums[0] != 10 || sums[1] != 0 {
		t.Errorf("sums %v", sums)
	}
	s.Multiply(sums, []float32{float32(math.Inf(1)), 5}, 0, 1, true, nil)
	if sums[0] != 20 {
		t.Errorf("sums %v", sums)
	}
}

func TestSparseRowsRejectWhatDoesNotFit(t *testing.T) {
	one := [SparseQuad][]int32{{7}}
	for name, f := range map[string]func(){
		"depth": func() { NewSparseRows(SparseDepth+1, 0, 0, SparseValues{}) },
		"column": func() {
			NewSparseRows(7, 0, 0, SparseValues{}).Append([SparseQuad]int{}, 0, one, [SparseQuad][]float32{{1}})
		},
		"row": func() {
			NewSparseRows(8, 0, 0, SparseValues{}).Append([SparseQuad]int{SparseLimit}, 0, one,
				[SparseQuad][]float32{{1}})
		},
		"order":   func() { sparseQuad().Append([SparseQuad]int{}, 0, [SparseQuad][]int32{}, [SparseQuad][]float32{}) },
		"sums":    func() { sparseQuad().Multiply(make([]float32, 3), make([]float32, 8), 0, 1, false, nil) },
		"vector":  func() { sparseQuad().Multiply(make([]float32, 4), make([]float32, 7), 0, 1, false, nil) },
		"panel":   func() { sparseQuad().Multiply(make([]float32, 64), make([]float32, 127), 0, 9, false, nil) },
		"columns": func() { sparseQuad().Multiply(make([]float32, 400), make([]float32, 400), 0, 33, false, nil) },
		"vectors": func() { multiplyAt(make([]float32, 400), make([]float32, 400), 12) },
		"wide":    func() { multiplyAt(make([]float32, 400), make([]float32, 400), SparseWide()+8) },
		"at sums": func() { multiplyAt(make([]float32, 63), make([]float32, 23), 16) },
		"at x":    func() { multiplyAt(make([]float32, 64), make([]float32, 22), 16) },
		"offsets": func() {
			sparseQuad().MultiplyAt(make([]float32, 32), make([]float32, 8), NewSparseOffsets(make([]int32, 7)), 8,
				false, nil)
		},
		"negative offset": func() { NewSparseOffsets([]int32{0, -1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			f()
		})
	}
}

// sparseQuad is four rows of eight columns with one element.
func sparseQuad() *SparseRows {
	s := NewSparseRows(8, 1, SparseQuad, SparseValues{})
	s.Append([SparseQuad]int{0, 1, 2, 3}, 0, [SparseQuad][]int32{{7}}, [SparseQuad][]float32{{1}})
	return s
}

// multiplyAt multiplies by rows that start one element apart.
func multiplyAt(sums, x []float32, cols int) {
	sparseQuad().MultiplyAt(sums, x, NewSparseOffsets([]int32{0, 1, 2, 3, 4, 5, 6, 7}), cols, false, nil)
}

func FuzzSparseRows(f *testing.F) {
	f.Add(uint64(1), uint8(7), uint8(33), uint8(5), uint8(20))
	f.Add(uint64(2), uint8(13), uint8(0), uint8(255), uint8(200))
	f.Add(uint64(3), uint8(9), uint8(20), uint8(100), uint8(60)) // 21 and 22 columns: three vectors of eight
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k, density uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		newSparseProduct(r, 1+int(m), 1+int(n%SparseCols), 1+int(k), float64(density)/255, sparseTypes[seed%3]).check(t)
		newSparseProduct(r, 1+int(m), 2+int(n)%(SparseWide()-1), 1+int(k), float64(density)/255,
			sparseTypes[seed%3]).checkAt(t)
	})
}

func BenchmarkSparseRowsAt(b *testing.B) {
	for _, n := range []int{8, 16, 24, 32, 40, 48, 56, 64} {
		for _, density := range []float64{0.05, 0.1, 0.2} {
			r := rand.New(rand.NewPCG(1, 2))
			p, at, x := newSparseProduct(r, SparseLimit/2, n, SparseDepth, density, SparseFloat),
				make([]int32, SparseDepth), gaussian(r, 1<<14)
			for k := range at {
				at[k] = int32(k/9*180 + k%9/3*58 + k%3) // taps of a convolution
			}
			b.Run(fmt.Sprintf("%d columns, density %v", n, density), func(b *testing.B) {
				for b.Loop() {
					p.rows.MultiplyAt(p.c, x, NewSparseOffsets(at), n, true, nil)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(density*SparseLimit/2*SparseDepth),
					"ns/nonzero")
			})
		}
	}
}

func BenchmarkSparseRows(b *testing.B) {
	for _, n := range []int{1, 8, 16, 24, 32} {
		for _, density := range []float64{0.05, 0.1, 0.2} {
			r := rand.New(rand.NewPCG(1, 2))
			p := newSparseProduct(r, SparseLimit, n, SparseDepth, density, SparseFloat)
			x := p.b
			if n > 1 {
				x = p.right(true).Data
			}
			b.Run(fmt.Sprintf("%d columns, density %v", n, density), func(b *testing.B) {
				for b.Loop() {
					p.rows.Multiply(p.c, x, GemmPanel*p.k, n, true, nil)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(density*SparseLimit*SparseDepth),
					"ns/nonzero")
			})
		}
	}
}

func TestInt32FromFloat(t *testing.T) {
	for n := range 40 {
		x, want := make([]float32, n), make([]int32, n)
		for i := range x {
			want[i] = int32(rand.IntN(1<<25) - 1<<24)
			x[i] = float32(want[i])
			want[i] = int32(x[i])
		}
		got := Words[int32](Bytes(x)) // in place
		Int32FromFloat(got, x)
		if !slices.Equal(got, want) {
			t.Errorf("%d: got %v, want %v", n, got, want)
		}
	}
}
