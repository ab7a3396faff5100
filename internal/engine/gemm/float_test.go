package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// sample is a product with all features.
type sample struct {
	Shape
	FloatProduct
}

func gaussian(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// matrix is rows by cols of random elements, in either order and with gaps.
func matrix(r *rand.Rand, rows, cols int) Matrix[float32] {
	gap := r.IntN(3)
	if r.IntN(2) == 0 {
		return Rows(gaussian(r, rows*(cols+gap)), cols+gap)
	}
	return Rows(gaussian(r, cols*(rows+gap)), rows+gap).T()
}

// spread is a broadcast matrix, or none.
func spread(r *rand.Rand, rows, cols int) Matrix[float32] {
	m := matrix(r, rows, cols)
	if r.IntN(2) == 0 {
		m.Row = 0
	}
	if r.IntN(2) == 0 {
		m.Col = 0
	}
	if r.IntN(3) == 0 {
		m.Data = nil
	}
	return m
}

func newSample(r *rand.Rand, m, n, k int) *sample {
	stride := n + r.IntN(3)
	s := &sample{Shape{m, n, k}, FloatProduct{
		A: matrix(r, m, k), B: matrix(r, k, n), C: gaussian(r, m*stride), Stride: stride,
		Epilogue: Epilogue{Bias: spread(r, m, n), Residual: spread(r, m, n), Beta: float32(r.IntN(3))},
	}}
	if s.Accumulate = r.IntN(2) == 0; !s.Accumulate {
		s.Epilogue.Alpha = float32(r.IntN(4)) / 2
	}
	if r.IntN(2) == 0 {
		s.Epilogue.Activate = negate
	}
	return s
}

func negate(row []float32) {
	for i := range row {
		row[i] = -row[i]
	}
}

// forms are the kinds of operand B.
var forms = []struct {
	name  string
	apply func(s *sample)
}{
	{"matrix", func(*sample) {}},
	{"packed", func(s *sample) { s.Packed = PackFloat(workers(2), s.B, s.K, s.N) }},
	{"panels", func(s *sample) {
		b := s.B
		s.Panels = func(dst []float32, k0, k1, n0, n1 int) {
			for k := k0; k < k1; k++ {
				for n := n0; n < n1; n++ {
					dst[(k-k0)*16+n-n0] = b.Data[k*b.Row+n*b.Col]
				}
			}
		}
	}},
}

// run returns the resulting C.
func (s sample) run(p Pool, form int) []float32 {
	forms[form].apply(&s)
	s.C = append([]float32(nil), s.C...)
	Float(p, s.Shape, ir.AlignedBytes(FloatWork(s.Shape, 1, p.Workers(), s.Packed != nil)), s.FloatProduct)
	return s.C
}

// exact is the definition in float64, and an error bound for float32 in any order.
func (s *sample) exact(i, j int) (want, bound float64) {
	at := func(m Matrix[float32]) float64 {
		if m.Data == nil {
			return 0
		}
		return float64(m.Data[i*m.Row+j*m.Col])
	}
	if s.Accumulate {
		want = float64(s.C[i*s.Stride+j])
		bound = math.Abs(want)
	}
	for k := range s.K {
		x := float64(s.A.Data[i*s.A.Row+k*s.A.Col]) * float64(s.B.Data[k*s.B.Row+j*s.B.Col])
		want, bound = want+x, bound+math.Abs(x)
	}
	e := s.Epilogue
	alpha, bias, residual := float64(orOne(e.Alpha)), float64(orOne(e.Beta))*at(e.Bias), at(e.Residual)
	want, bound = alpha*want+bias+residual, alpha*bound+math.Abs(bias)+math.Abs(residual)
	if e.Activate != nil {
		want = -want
	}
	return want, bound * float64(s.K+4) / (1 << 23)
}

func (s *sample) check(t *testing.T, got []float32) {
	t.Helper()
	for at, g := range got {
		i, j := at/s.Stride, at%s.Stride
		if j >= s.N {
			if g != s.C[at] {
				t.Fatalf("row %d was written beyond its end", i)
			}
			continue
		}
		if want, bound := s.exact(i, j); !(math.Abs(float64(g)-want) <= bound) {
			t.Fatalf("c[%d][%d] is %v, want %v within %v", i, j, g, want, bound)
		}
	}
}

func TestFloatIsBitIdenticalInAllForms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shapes := []Shape{{1, 1, 0}, {1, 784, 512}, {300, 40, 300}, {13, 1100, 257}, {256, 256, 512}, {1, 100, 600},
		{1, 1037, 300}}
	for range 60 {
		shapes = append(shapes, Shape{1 + r.IntN(60), 1 + r.IntN(90), r.IntN(300)})
	}
	for _, shape := range shapes {
		s := newSample(r, shape.M, shape.N, shape.K)
		t.Run(fmt.Sprintf("%dx%dx%d", s.M, s.N, s.K), func(t *testing.T) {
			want := s.run(workers(1), 0)
			s.check(t, want)
			for form := range forms {
				for _, w := range []workers{1, 2, 8} {
					if got := s.run(w, form); !equalBits(got, want) {
						t.Errorf("%s, %d workers: not bit-identical", forms[form].name, w)
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

func FuzzFloat(f *testing.F) {
	f.Add(uint64(1), uint16(70), uint16(33), uint16(300), uint8(1))
	f.Add(uint64(2), uint16(1), uint16(1000), uint16(0), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint16, form uint8) {
		s := newSample(rand.New(rand.NewPCG(seed, 0)), 1+int(m%300), 1+int(n%300), int(k%600))
		s.check(t, s.run(workers(1+seed%4), int(form)%len(forms)))
	})
}

func TestFloatBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	shape := Shape{20, 70, 40}
	var products []FloatProduct
	var want [][]float32
	for range 9 {
		s := newSample(r, shape.M, shape.N, shape.K)
		want = append(want, s.run(workers(1), 0))
		products = append(products, s.FloatProduct)
	}
	Float(workers(3), shape, ir.AlignedBytes(FloatWork(shape, len(products), 3, false)), products...)
	for i, p := range products {
		if !equalBits(p.C, want[i]) {
			t.Errorf("product %d: not bit-identical to a single product", i)
		}
	}
}

// A weight may be packed in any pieces, stored in either order.
func TestPackInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const k, n = 600, 83
	for _, b := range []Matrix[float32]{Rows(gaussian(r, k*n), n), Rows(gaussian(r, k*n), k).T()} {
		want, byRows, byCols := PackFloat(workers(1), b, k, n), newPackedFloat(k, n), newPackedFloat(k, n)
		for at := 0; at < k; at += 77 {
			byRows.Pack(at, 0, b.from(at, 0), min(77, k-at), n)
		}
		for at := 0; at < n; at += 32 {
			byCols.Pack(0, at, b.from(0, at), k, min(32, n-at))
		}
		if !equalBits(byRows.data, want.data) || !equalBits(byCols.data, want.data) {
			t.Error("packed pieces differ from the packed whole")
		}
	}
}

func TestFloatPanicsOnInvalidOperands(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	shape := Shape{8, 40, 9}
	for name, spoil := range map[string]func(p *FloatProduct){
		"A":         func(p *FloatProduct) { p.A = Rows(make([]float32, 71), 9) },
		"B":         func(p *FloatProduct) { p.B = Rows(make([]float32, 359), 40) },
		"C":         func(p *FloatProduct) { p.C, p.Stride = make([]float32, 319), 40 },
		"Bias":      func(p *FloatProduct) { p.Epilogue.Bias = Matrix[float32]{make([]float32, 39), 0, 1} },
		"Packed":    func(p *FloatProduct) { p.Packed = newPackedFloat(9, 41) },
		"Quantized": func(p *FloatProduct) { p.Quantized = &kernel.Quantized{K: 9, N: 41, Bits: 4, Block: 32} },
		"factor":    func(p *FloatProduct) { p.Accumulate, p.Epilogue.Alpha = true, 2 },
	} {
		s := newSample(r, shape.M, shape.N, shape.K)
		spoil(&s.FloatProduct)
		if !panics(func() { Float(workers(1), shape, make([]byte, 1<<20), s.FloatProduct) }) {
			t.Errorf("%s: accepted", name)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// A left operand that Rows writes and a result that Store takes are bit-identical to matrices, for any number of
// workers.
func TestRowsAndStore(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, s := range []Shape{{1, 1, 1}, {1, 40, 300}, {7, 300, 20}, {200, 530, 270}, {13, 17, 0}} {
		a, b, bias := matrix(r, s.M, s.K), matrix(r, s.K, s.N), gaussian(r, s.M)
		p := FloatProduct{A: a, B: b, C: make([]float32, s.M*s.N), Stride: s.N,
			Epilogue: Epilogue{Bias: Matrix[float32]{Data: bias, Row: 1}, Activate: negate}}
		Float(workers(1), s, ir.AlignedBytes(FloatWork(s, 1, 1, false)), p)
		q := p
		q.A, q.C = Matrix[float32]{}, nil
		q.Rows = func(dst []float32, i0, i1, k0, k1 int) {
			for i := i0; i < i1; i++ {
				for k := k0; k < k1; k++ {
					dst[(i-i0)*(k1-k0)+k-k0] = a.Data[i*a.Row+k*a.Col]
				}
			}
		}
		for n := 1; n < 4; n++ {
			got := make([]float32, len(p.C))
			q.Store = func(row []float32, i, j int) { copy(got[i*s.N+j:][:len(row)], row) }
			Float(workers(n), s, ir.AlignedBytes(StoreWork(s, 1, n)), q)
			for i, v := range p.C {
				if math.Float32bits(got[i]) != math.Float32bits(v) {
					t.Fatalf("%v with %d workers: element %d is %v, want %v", s, n, i, got[i], v)
				}
			}
		}
	}
}
