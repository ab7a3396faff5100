package spmm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// workers is a pool for tests with that number of goroutines.
type workers int

func (w workers) Workers() int { return int(w) }

func (w workers) For(n int, f func(i int)) { w.Slots(n, func(i, _ int) { f(i) }) }

func (w workers) Slots(n int, f func(task, slot int)) {
	var all sync.WaitGroup
	slots := make(chan int, w)
	for i := range int(w) {
		slots <- i
	}
	for i := range n {
		slot := <-slots
		all.Go(func() {
			f(i, slot)
			slots <- slot
		})
	}
	all.Wait()
}

// gaussian draws n numbers, a fraction density of which is not zero.
func gaussian(r *rand.Rand, n int, density float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		if r.Float64() < density {
			x[i] = float32(r.NormFloat64())
		}
	}
	return x
}

// A sample is products of one shape whose weight is the right or the left operand.
type sample struct {
	gemm.Shape
	right    bool
	source   Source
	values   kernel.SparseValues
	products []gemm.FloatProduct
}

func newSample(r *rand.Rand, s gemm.Shape, density float64, right bool) *sample {
	p := &sample{Shape: s, right: right, products: make([]gemm.FloatProduct, 1+r.IntN(2))}
	a, b := gemm.Rows(gaussian(r, s.M*s.K, 1), s.K), gemm.Rows(gaussian(r, s.K*s.N, density), s.N)
	if !right {
		a, b = gemm.Rows(gaussian(r, s.M*s.K, density), s.K), gemm.Rows(gaussian(r, s.K*s.N, 1), s.N)
	}
	switch {
	case right && r.IntN(2) == 0: // stored N×K
		b = gemm.Matrix[float32]{Data: make([]float32, len(b.Data)), Row: 1, Col: s.K}
		for i := range b.Data {
			if r.Float64() < density {
				b.Data[i] = float32(r.NormFloat64())
			}
		}
	case right && r.IntN(2) == 0: // A stored K×M
		a.Row, a.Col = 1, s.M
	}
	if p.source = Dense(a, s.K); right {
		p.source = Dense(b.T(), s.K)
	}
	for i := range p.products {
		f := &p.products[i]
		f.A, f.B, f.C, f.Stride = a, b, gaussian(r, s.M*s.N, 1), s.N
		f.Accumulate = !right && i == 0
		if !f.Accumulate {
			f.Epilogue.Alpha = 0.5
		}
		f.Epilogue.Bias = gemm.Matrix[float32]{Data: gaussian(r, s.N, 1), Col: 1}
		if !right {
			f.Epilogue.Bias = gemm.Matrix[float32]{Data: gaussian(r, s.M, 1), Row: 1}
		}
		f.Epilogue.Residual = gemm.Rows(gaussian(r, s.M*s.N, 1), s.N)
		f.Epilogue.Activate = func(row []float32) { kernel.Relu(row, row) }
	}
	return p
}

// copies are the products with results of their own.
func (p *sample) copies() []gemm.FloatProduct {
	out := append([]gemm.FloatProduct(nil), p.products...)
	for i := range out {
		out[i].C = append([]float32(nil), out[i].C...)
	}
	return out
}

func (p *sample) dense() []gemm.FloatProduct {
	out := p.copies()
	gemm.Float(workers(1), p.Shape, ir.AlignedBytes(gemm.FloatWork(p.Shape, len(out), 1, false)), out...)
	return out
}

func (p *sample) sparse(n workers, change func(f *gemm.FloatProduct)) []gemm.FloatProduct {
	out := p.copies()
	for i := range out {
		change(&out[i])
	}
	if p.right {
		Right(n, Pack(n, p.N, p.K, p.source, p.values), p.Shape, ir.AlignedBytes(Work(p.N, p.M, int(n))), out...)
	} else {
		Left(n, Pack(n, p.M, p.K, p.source, p.values), p.Shape, ir.AlignedBytes(Work(p.M, p.N, int(n))), out...)
	}
	return out
}

func same(t *testing.T, name string, got, want []gemm.FloatProduct) {
	t.Helper()
	for i := range want {
		for j, v := range want[i].C {
			if math.Float32bits(got[i].C[j]) != math.Float32bits(v) {
				t.Fatalf("%s: product %d, element %d is %v, want %v", name, i, j, got[i].C[j], v)
			}
		}
	}
}

func keep(*gemm.FloatProduct) {}

// Products are bit-identical to those of the dense weight, for any number of workers.
func TestProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []gemm.Shape{
		{M: 1, N: 1, K: 1}, {M: 1, N: 300, K: 700}, {M: 300, N: 1, K: 260}, {M: 8, N: 130, K: 256},
		{M: 33, N: 70, K: 513},
		{M: 21, N: 49, K: 300}, {M: 300, N: 21, K: 30}, {M: 5, N: 7, K: 0}, {M: 2, N: 2100, K: 40},
		{M: 2100, N: 17, K: 40},
	} {
		for _, density := range []float64{0, 0.05, 0.5, 1} {
			for _, right := range []bool{true, false} {
				p := newSample(r, s, density, right)
				want := p.dense()
				for _, n := range []workers{1, 3} {
					same(t, fmt.Sprintf("%v, density %v, right %v, %d workers", s, density, right, n),
						p.sparse(n, keep), want)
				}
			}
		}
	}
}

// The dense operand of a convolution is written on demand, and its result may be converted.
func TestPanelsAndStore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 16, 49} {
		p := newSample(r, gemm.Shape{M: 40, N: n, K: 300}, 0.2, false)
		p.products = p.products[:1]
		p.products[0].Accumulate = false
		var stored []float32
		want := p.dense()
		got := p.sparse(2, func(f *gemm.FloatProduct) {
			b, c := f.B, f.C
			f.B, f.C, stored = gemm.Matrix[float32]{}, nil, c
			f.Panels = func(dst []float32, k0, k1, n0, n1 int) {
				for k := k0; k < k1; k++ {
					copy(dst[(k-k0)*kernel.GemmPanel:][:n1-n0], b.Data[k*n+n0:])
				}
			}
			f.Store = func(row []float32, i, j int) { copy(c[i*n+j:], row) }
		})
		got[0].C = stored
		same(t, "panels", got, want)
	}
}

// Parts have about as many elements; padding costs little.
func TestPackBalancesAndPadsLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, k = 1000, 1000
	x := gaussian(r, rows*k, 0.1)
	for i := range 40 * k {
		x[i] = 1
	}
	m, nonzeros := Pack(workers(2), rows, k, Dense(gemm.Rows(x, k), k), kernel.SparseValues{}), 0
	for _, g := range m.groups {
		nonzeros += g.nonzeros
	}
	if most := int64(1.1 * 5 * float64(nonzeros)); m.Bytes() > most {
		t.Errorf("%d bytes for %d elements, want at most %d", m.Bytes(), nonzeros, most)
	}
	for _, part := range m.parts(2) {
		n := 0
		for _, g := range part {
			n += g.nonzeros
		}
		if fraction := float64(n) / float64(nonzeros); fraction < 0.35 || fraction > 0.65 {
			t.Errorf("a part of two has %.2f of the elements", fraction)
		}
	}
}

// The rows from one to another are listed, and no others, whether rows or columns are contiguous.
func TestRowsOfAPart(t *testing.T) {
	dense := gemm.Rows([]float32{1, 0, 2, 0, 3, 0, 0, 0, 4, 5, 0, 6}, 3) // of 4 rows
	transposed := gemm.Matrix[float32]{Data: []float32{1, 0, 0, 5, 0, 3, 0, 0, 2, 0, 4, 6}, Row: 1, Col: 4}
	for from, want := range []string{"[0 2]=[1 2] [1]=[3] ", "[1]=[3] [2]=[4] ", "[2]=[4] [0 2]=[5 6] "} {
		for name, source := range map[string]Source{"rows": Dense(dense, 3), "columns": Dense(transposed, 3)} {
			r, got := source(from, from+2), ""
			for i := range r.ends {
				cols, v := r.of(i)
				got += fmt.Sprintf("%v=%v ", cols, v)
			}
			if got != want {
				t.Errorf("%s %d and %d: got %s, want %s", name, from, from+1, got, want)
			}
		}
	}
}

func TestAt(t *testing.T) {
	positions, values := []int32{1, 4, 6, 7, 11}, []float32{10, 40, 60, 70, 110}
	for _, c := range []struct {
		row, col, k, from, to int
		want                  string
	}{
		{3, 1, 3, 0, 4, "[1]=[10] [1]=[40] [0 1]=[60 70] [2]=[110] "},
		{3, 1, 3, 1, 3, "[1]=[40] [0 1]=[60 70] "},
		{1, 3, 4, 0, 3, "[2]=[60] [0 1 2]=[10 40 70] [3]=[110] "},
		{1, 3, 4, 2, 3, "[3]=[110] "},
		{1, 1, 12, 0, 1, "[1 4 6 7 11]=[10 40 60 70 110] "},
		{1, 1, 1, 4, 8, "[0]=[40] []=[] [0]=[60] [0]=[70] "},
		{3, 1, 3, 2, 6, "[0 1]=[60 70] [2]=[110] []=[] []=[] "},
	} {
		r, got := At(positions, values, c.row, c.col, c.k)(c.from, c.to), ""
		for i := range r.ends {
			cols, v := r.of(i)
			got += fmt.Sprintf("%v=%v ", cols, v)
		}
		if got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

func TestIsSparse(t *testing.T) {
	minElems := FloatDensity.elems
	for _, c := range []struct {
		elems, nonzeros int
		want            bool
	}{{minElems, minElems / 5, true}, {minElems, minElems / 4, false}, {minElems - 1, 0, false},
		{1 << 20, 1 << 20, false}} {
		x := make([]float32, c.elems)
		for i := range c.nonzeros {
			x[i*len(x)/c.nonzeros] = 1
		}
		if got := IsSparse(FloatDensity, x); got != c.want || got != FloatDensity.Worthwhile(c.elems, c.nonzeros) {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
