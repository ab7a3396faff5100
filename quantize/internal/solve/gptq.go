package solve

import (
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// GPTQ quantizes w, K×N, row by row with error feedback: each row is rounded to nearest at the value that compensates
// the errors of the rows before, see hessian.Columns. Pruned elements, none if nil, become zero, and the others
// compensate their errors, too, as in SparseGPT.
func GPTQ(p gemm.Pool, w []float32, n int, f *hessian.Factor, g Spec, pruned []bool) *Quantized {
	c, space := newQuantized(f.K, n, g), g.space()
	p.For((n+wide-1)/wide, func(i int) {
		s := &sweep{Quantized: c, Columns: f.Columns(w, n, i*wide), space: space, pruned: pruned}
		s.u = make([]float32, max(g.Block, hessian.Lazy)*wide)
		s.run()
	})
	return c
}

const wide = hessian.Wide

// A sweep quantizes a range of columns.
type sweep struct {
	*Quantized
	*hessian.Columns
	space  kernel.RoundSpace
	u      []float32 // of the current block, rows of wide
	pruned []bool    // K×N; nil for none
}

func (s *sweep) run() {
	// From the last row to the first: R is upper triangular, so that the error of a row reaches only rows before it.
	// The usual order needs the inverse of H, which is never computed here.
	for end := s.Factor.K; end > 0; {
		from := s.start(end)
		s.block(from, end)
		end = from
	}
}

// start is the first position of the block that ends at end.
func (s *sweep) start(end int) int {
	from := end - 1
	for from > 0 && s.Order[from-1]/s.Spec.Block == s.Order[end-1]/s.Spec.Block {
		from--
	}
	return from
}

// block quantizes the positions [first, end).
func (s *sweep) block(first, end int) {
	s.Load(s.u, first, end)
	s.clear(first, end)
	// Scales fit the values with the feedback of all blocks that were solved before, and without that of their own
	// block, whose errors follow from the scales. Rows count by what their error adds to the outputs.
	s.fit(s.Order[end-1]/s.Spec.Block, s.u, s.Loss[first:end])
	// Lazily: the errors of a batch of rows reach the rows before it by one product of matrices, and only those
	// within the batch row by row.
	for to := end; to > first; {
		from := max(first, to-hessian.Lazy)
		u := s.u[(from-first)*wide:]
		s.FeedBack(u, from, to-from, to, end)
		for i := to - 1; i >= from; i-- {
			s.place(i, u[(i-from)*wide:][:wide], to)
		}
		to = from
	}
}

// clear zeroes the pruned elements of the positions [first, end), so that scales fit the others.
func (s *sweep) clear(first, end int) {
	for i := first; i < end; i++ {
		u := s.u[(i-first)*wide:]
		for j, pruned := range s.prunedOf(s.Order[i]) {
			if pruned {
				u[j] = 0
			}
		}
	}
}

// prunedOf marks the pruned elements of a row of W; nil for none.
func (s *sweep) prunedOf(row int) []bool {
	if s.pruned == nil {
		return nil
	}
	return s.pruned[row*s.Columns.N+s.First:][:s.Cols]
}

// place quantizes one row; the feedback of errors from position to on is included in u already.
func (s *sweep) place(i int, u []float32, to int) {
	s.FeedBackRow(u, i, to)
	row := s.Order[i]
	for j, pruned := range s.prunedOf(row) {
		if pruned {
			u[j] = 0 // which is rounded to the zero point
		}
	}
	scale, zero := s.affine(row / s.Spec.Block)
	quantized := s.Values[row*s.Columns.N+s.First:][:s.Cols]
	kernel.RoundErrors(quantized, s.Errors[i*wide:], u, s.Row(i), scale, zero, s.Spec.levels())
}

func (s *sweep) affine(block int) (scale []float32, zero []int32) {
	at := block*s.Columns.N + s.First
	return s.Scale[at:][:s.Cols], s.Zero[at:][:s.Cols]
}

// fit chooses the scales of a block for u, with rows weighted by loss.
func (s *sweep) fit(block int, u []float32, loss []float64) {
	weight := relative(loss)
	scale, zero := s.affine(block)
	for j := 0; j < s.Cols; j += kernel.RoundLanes {
		s.Spec.best(scale[j:], zero[j:], u[j:], weight, s.space)
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
