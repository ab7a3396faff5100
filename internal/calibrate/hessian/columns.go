package hessian

import "github.com/mcompress/mcompress/internal/kernel"

// Wide is the number of independent columns that a worker solves at a time. The error feedback of earlier rows is
// applied to Lazy rows at once, as one matrix product.
const (
	Wide = 128
	Lazy = 32
)

// Columns are a range of columns of W, whose rows are replaced one after the other, from the last position of the
// factor up. The output error of a column is |R·(w-q)|², and R is upper triangular: its row i depends only on the
// errors of rows j ≥ i. Thus
//
//	u[i] = w[i] + Σ (j > i) R[i,j]/R[i,i]·(w[j]-q[j])
//
// is the best value for row i, and q[i] adds R[i,i]²·(u[i]-q[i])² to the output error. This equals the updates by the
// inverse of H (optimal brain surgeon) in reversed order, without the inverse: H⁻¹ = CᵀC with an upper triangular C,
// which for the reversed order is R⁻¹, and updates of the remaining rows by the rows of C are the column form of the
// back-substitution above.
type Columns struct {
	*Factor
	W           []float32 // K×N
	N           int
	First, Cols int       // the range, of up to Wide columns
	Errors      []float32 // w-q by position, rows of Wide
}

// Columns is the range of up to Wide columns of w, K×n, from first on.
func (f *Factor) Columns(w []float32, n, first int) *Columns {
	return &Columns{Factor: f, W: w, N: n, First: first, Cols: min(Wide, n-first), Errors: make([]float32, f.K*Wide)}
}

// Row is the row of W at a position.
func (c *Columns) Row(i int) []float32 { return c.W[c.Order[i]*c.N+c.First:][:c.Cols] }

// Load sets rows of u to those of W at the positions [first, end), with the feedback of the errors from end on.
func (c *Columns) Load(u []float32, first, end int) {
	for i := first; i < end; i++ {
		copy(u[(i-first)*Wide:], c.Row(i))
	}
	c.FeedBack(u, first, end-first, end, c.K)
}

// FeedBack adds to rows of u, the positions from i on, the compensation of the errors at positions [j0, j1).
func (c *Columns) FeedBack(u []float32, i, rows, j0, j1 int) {
	if j0 == j1 {
		return
	}
	a := kernel.GemmA{Data: c.Unit[i*c.K+j0:], Strip: kernel.GemmRows() * c.K, Row: c.K, K: 1}
	b := kernel.GemmB{Data: c.Errors[j0*Wide:], Panel: kernel.GemmPanel, K: Wide}
	kernel.GemmFloat(u, Wide, a, b, rows, Wide, j1-j0, true)
}

// FeedBackRow is FeedBack for one row, and the errors between it and position to.
func (c *Columns) FeedBackRow(u []float32, i, to int) {
	kernel.GemvFloat(u, c.Unit[i*c.K+i+1:], 1, c.Errors[min(i+1, c.K-1)*Wide:], Wide, to-i-1)
}
