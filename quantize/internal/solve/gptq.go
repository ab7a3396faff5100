package solve

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// GPTQ quantizes w, K×N, row by row with error feedback. The output error of a column is |R·(w-q)|², and R is upper
// triangular: its row i depends only on the errors of rows j ≥ i. From the last position up, each row is rounded to nearest at
//
//	u[i] = w[i] + Σ (j > i) R[i,j]/R[i,i]·(w[j]-q[j])
//
// and adds R[i,i]²·(u[i]-q[i])² to the output error. This equals GPTQ in reversed order, without the inverse of H: GPTQ
// factors H⁻¹ = CᵀC with an upper triangular C, which for the reversed order is R⁻¹, and its updates of the remaining rows
// by the rows of C are the column form of the back-substitution above.
func GPTQ(p gemm.Pool, w []float32, n int, f *Factor, g Spec) *Quantized {
	c := newQuantized(f.K, n, g)
	p.For((n+wide-1)/wide, func(i int) {
		s := &sweep{Quantized: c, f: f, w: w, first: i * wide, cols: min(wide, n-i*wide)}
		s.errors, s.u = make([]float32, f.K*wide), make([]float32, max(g.Block, lazy)*wide)
		s.run()
	})
	return c
}

// A worker quantizes wide independent columns at a time. The error feedback of earlier rows is applied to lazy rows at once,
// as one matrix product.
const wide, lazy = 128, 32

// A sweep quantizes a range of columns.
type sweep struct {
	*Quantized
	f           *Factor
	w           []float32
	first, cols int
	errors      []float32 // w-q by position, rows of wide
	u           []float32 // of the current block, rows of wide
}

func (s *sweep) run() {
	for end := s.K; end > 0; {
		from := s.start(end)
		s.block(from, end)
		end = from
	}
}

// start is the first position of the block that ends at end.
func (s *sweep) start(end int) int {
	from := end - 1
	for from > 0 && s.f.order[from-1]/s.Spec.Block == s.f.order[end-1]/s.Spec.Block {
		from--
	}
	return from
}

// block quantizes the positions [first, end).
func (s *sweep) block(first, end int) {
	for i := first; i < end; i++ {
		copy(s.u[(i-first)*wide:], s.row(i))
	}
	s.feedBack(s.u, first, end-first, end, s.K)
	s.fit(s.f.order[end-1]/s.Spec.Block, s.u, s.f.loss[first:end])
	for to := end; to > first; {
		from := max(first, to-lazy)
		u := s.u[(from-first)*wide:]
		s.feedBack(u, from, to-from, to, end)
		for i := to - 1; i >= from; i-- {
			s.place(i, u[(i-from)*wide:][:wide], to)
		}
		to = from
	}
}

// row is the row of w at a position.
func (s *sweep) row(i int) []float32 { return s.w[s.f.order[i]*s.N+s.first:][:s.cols] }

// feedBack adds to rows of u, the positions from i on, the compensation of the errors at positions [j0, j1).
func (s *sweep) feedBack(u []float32, i, rows, j0, j1 int) {
	if j0 == j1 {
		return
	}
	a := kernel.GemmA{Data: s.f.unit[i*s.K+j0:], Strip: kernel.GemmRows() * s.K, Row: s.K, K: 1}
	b := kernel.GemmB{Data: s.errors[j0*wide:], Panel: kernel.GemmPanel, K: wide}
	kernel.GemmFloat(u, wide, a, b, rows, wide, j1-j0, true)
}

// place quantizes one row; the feedback of errors from position to on is included in u already.
func (s *sweep) place(i int, u []float32, to int) {
	kernel.GemvFloat(u, s.f.unit[i*s.K+i+1:], 1, s.errors[min(i+1, s.K-1)*wide:], wide, to-i-1)
	row := s.f.order[i]
	scale, zero := s.affine(row / s.Spec.Block)
	quantized, errors := s.Values[row*s.N+s.first:][:s.cols], s.errors[i*wide:]
	for j, w := range s.row(i) {
		value := s.Spec.round(u[j], 1/scale[j], zero[j])
		quantized[j] = byte(value + zero[j])
		errors[j] = w - float32(value)*scale[j]
	}
}

func (s *sweep) affine(block int) (scale []float32, zero []int32) {
	at := block*s.N + s.first
	return s.Scale[at:][:s.cols], s.Zero[at:][:s.cols]
}

// fit chooses the scales of a block for u, with rows weighted by loss.
func (s *sweep) fit(block int, u []float32, loss []float64) {
	f := search{Spec: s.Spec, weight: relative(loss)}
	scale, zero := s.affine(block)
	for j := 0; j < s.cols; j += lanes {
		f.x = u[j:]
		f.run()
		for i, best := range f.scale {
			f.scale[i] = s.Spec.stored(best)
		}
		copy(scale[j:], f.scale[:])
		copy(zero[j:], f.best[:])
	}
}

// relative is loss divided by its maximum.
func relative(loss []float64) []float32 {
	most := slices.Max(loss)
	weights := make([]float32, len(loss))
	for i, l := range loss {
		weights[i] = 1
		if most > 0 {
			weights[i] = float32(l / most)
		}
	}
	return weights
}
