package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// intSample is a product of bytes with all features.
type intSample struct {
	Shape
	IntProduct
}

func newIntSample(r *rand.Rand, m, n, k int) *intSample {
	stride := n + r.IntN(3)
	s := &intSample{Shape{m, n, k}, IntProduct{
		A: byteMatrix(r, m, k), ASigned: r.IntN(2) == 0, B: byteMatrix(r, k, n), BSigned: r.IntN(2) == 0,
		C: make([]int32, m*stride), Stride: stride,
	}}
	s.AZero, s.BZero = zeros(r, m, s.ASigned), zeros(r, n, s.BSigned)
	for i := range s.C {
		s.C[i] = int32(i)
	}
	return s
}

// byteMatrix has many extreme values: sums of their products exceed 16 bits.
func byteMatrix(r *rand.Rand, rows, cols int) Matrix[byte] {
	m := matrix(r, rows, cols)
	b := make([]byte, len(m.Data))
	for i := range b {
		b[i] = byte(r.Uint32())
		if r.IntN(2) == 0 {
			b[i] = []byte{0, 0x7f, 0x80, 0xff}[r.IntN(4)]
		}
	}
	return Matrix[byte]{b, m.Row, m.Col}
}

func zeros(r *rand.Rand, n int, signed bool) []int32 {
	z := make([]int32, []int{0, 1, n}[r.IntN(3)])
	for i := range z {
		z[i] = element(byte(r.Uint32()), signed)
	}
	return z
}

func element(b byte, signed bool) int32 {
	if signed {
		return int32(int8(b))
	}
	return int32(b)
}

// want is the definition.
func (s *intSample) want() []int32 {
	c := slices.Clone(s.C)
	for i := range s.M {
		for j := range s.N {
			sum := int32(0)
			for k := range s.K {
				a := element(s.A.Data[i*s.A.Row+k*s.A.Col], s.ASigned) - zeroAt(s.AZero, i)
				sum += a * (element(s.B.Data[k*s.B.Row+j*s.B.Col], s.BSigned) - zeroAt(s.BZero, j))
			}
			c[i*s.Stride+j] = sum
		}
	}
	return c
}

var intForms = []struct {
	name  string
	apply func(s *intSample)
}{
	{"matrix", func(*intSample) {}},
	{"packed", func(s *intSample) { s.Packed = PackInt(workers(2), s.B, s.K, s.N, s.BSigned) }},
	{"panels", func(s *intSample) {
		b := s.B
		s.Panels = func(dst []byte, k0, k1, n0, n1 int) {
			for k := k0; k < k1; k++ {
				for n := n0; n < n1; n++ {
					dst[(k-k0)*16+n-n0] = b.Data[k*b.Row+n*b.Col]
				}
			}
		}
	}},
	{"finish", func(s *intSample) {
		c, stride := s.C, s.Stride
		s.Finish = EachRow(func(row, col int, sums []int32) { copy(c[row*stride+col:], sums) })
		s.C = nil
	}},
}

// run returns the resulting C.
func (s intSample) run(p Pool, form int) []int32 {
	s.C = slices.Clone(s.C)
	c := s.C
	intForms[form].apply(&s)
	work := ir.AlignedBytes(IntWork(s.Shape, 1, p.Workers(), s.Packed != nil, s.Finish != nil))
	for i := range work {
		work[i] = 0x55 // earlier contents must not matter
	}
	Int(p, s.Shape, work, s.IntProduct)
	return c
}

func TestIntIsExactInAllForms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shapes := []Shape{{1, 1, 0}, {3, 20, 0}, {1, 784, 512}, {130, 40, 30}, {5, 1100, 17}, {7, 30, 2100}}
	for range 60 {
		shapes = append(shapes, Shape{1 + r.IntN(60), 1 + r.IntN(90), r.IntN(300)})
	}
	for _, shape := range shapes {
		s := newIntSample(r, shape.M, shape.N, shape.K)
		t.Run(fmt.Sprintf("%dx%dx%d", s.M, s.N, s.K), func(t *testing.T) {
			want := s.want()
			for form := range intForms {
				for _, w := range []workers{1, 3} {
					if got := s.run(w, form); !slices.Equal(got, want) {
						t.Errorf("%s, %d workers: wrong product", intForms[form].name, w)
					}
				}
			}
		})
	}
}

// requantized checks the quantized result of a sample.
func (s intSample) requantized(t *testing.T, r *rand.Rand, p Pool) {
	t.Helper()
	q := kernel.Requantization{Scale: make([]float32, s.N), Bias: make([]float32, s.N), Zero: 3,
		Levels: kernel.IntRange{Lo: -128, Hi: 120}}
	for i := range q.Scale {
		q.Scale[i], q.Bias[i] = r.Float32()/float32(100*(1+s.K)), 40*r.Float32()
	}
	sums, want := s.want(), make([]byte, s.M*s.N)
	for i := range s.M {
		kernel.Requantize(want[i*s.N:], s.N, sums[i*s.Stride:][:s.N], q)
	}
	stride := s.N + 5
	got := make([]byte, s.M*stride)
	s.C, s.Quantized, s.Requantization = nil, Rows(got, stride), q
	Int(p, s.Shape, ir.AlignedBytes(IntWork(s.Shape, 1, p.Workers(), s.Packed != nil, true)), s.IntProduct)
	for i, b := range got {
		if row, col := i/stride, i%stride; col < s.N && b != want[row*s.N+col] || col >= s.N && b != 0 {
			t.Fatalf("%+v: element %d of row %d is %d", s.Shape, col, row, b)
		}
	}
}

func TestQuantizedResult(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	excess := 0
	for i := range 60 {
		s := newIntSample(r, 1+r.IntN(60), 1+r.IntN(200), r.IntN(300)+i%3*600)
		if i%2 == 0 {
			s.B, s.BSigned, s.BZero = normal(r, s.K, s.N, 30+20*r.Float64(), true), true, nil
			s.AZero = s.AZero[:min(len(s.AZero), 1)]
		}
		if i%5 > 0 {
			s.Packed = packPairs(workers(1), s.B, s.K, s.N, s.BSigned)
			if s.Packed.pairs != nil && s.K <= intDepth {
				excess += len(s.Packed.pairs.quads)
			}
		}
		s.requantized(t, r, workers(1+i%3))
	}
	if excess == 0 {
		t.Error("no sample has excess")
	}
}

func FuzzInt(f *testing.F) {
	f.Add(uint64(1), uint16(70), uint16(33), uint16(300), uint8(1))
	f.Add(uint64(2), uint16(130), uint16(1000), uint16(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint16, form uint8) {
		s := newIntSample(rand.New(rand.NewPCG(seed, 0)), 1+int(m%200), 1+int(n%300), int(k%1500))
		if !slices.Equal(s.run(workers(1+seed%4), int(form)%len(intForms)), s.want()) {
			t.Error("wrong product")
		}
	})
}

// Every element is finished once.
func TestFinishCoversTheResult(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := newIntSample(r, 250, 1500, 20)
	var mu sync.Mutex
	times := make([]int, s.M*s.N)
	s.Finish = EachRow(func(row, col int, sums []int32) {
		mu.Lock()
		defer mu.Unlock()
		for j := range sums {
			times[row*s.N+col+j]++
		}
	})
	Int(workers(3), s.Shape, ir.AlignedBytes(IntWork(s.Shape, 1, 3, false, true)), s.IntProduct)
	if i := slices.IndexFunc(times, func(n int) bool { return n != 1 }); i >= 0 {
		t.Errorf("element %d was finished %d times", i, times[i])
	}
}

func TestPackIntInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const k, n = 2050, 83
	b := byteMatrix(r, k, n)
	want, byRows, byCols := packInt(workers(1), b, k, n, true), newPackedInt(k, n, true), newPackedInt(k, n, true)
	for at := 0; at < k; at += 84 {
		byRows.Pack(at, 0, b.from(at, 0), min(84, k-at), n)
	}
	for at := 0; at < n; at += 32 {
		byCols.Pack(0, at, b.from(0, at), k, min(32, n-at))
	}
	if !slices.Equal(byRows.data, want.data) || !slices.Equal(byCols.data, want.data) {
		t.Error("packed pieces differ from the packed whole")
	}
}

func TestIntPanicsOnInvalidOperands(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	shape := Shape{8, 40, 9}
	for name, spoil := range map[string]func(p *IntProduct){
		"A":         func(p *IntProduct) { p.A = Rows(make([]byte, 71), 9) },
		"B":         func(p *IntProduct) { p.B = Rows(make([]byte, 359), 40) },
		"C":         func(p *IntProduct) { p.C, p.Stride = make([]int32, 319), 40 },
		"quantized": func(p *IntProduct) { p.Quantized = Rows(make([]byte, 319), 40) },
		"zeros":     func(p *IntProduct) { p.BZero = make([]int32, 39) },
		"Packed":    func(p *IntProduct) { p.Packed = newPackedInt(9, 41, true) },
	} {
		s := newIntSample(r, shape.M, shape.N, shape.K)
		spoil(&s.IntProduct)
		if !panics(func() { Int(workers(1), shape, make([]byte, 1<<20), s.IntProduct) }) {
			t.Errorf("%s: accepted", name)
		}
	}
}
