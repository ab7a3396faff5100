package solve

import "github.com/mcompress/mcompress/internal/kernel"

// NewCodes returns room for the codes of a matrix of k rows and n columns.
func NewCodes(k, n int, g Grid) *Codes { return newCodes(k, n, g) }

// factors are the parts of a block's range that its search tries as steps times the number of codes; those of symmetric
// grids, over the largest magnitude, stand either way round, as one of the codes' ends is further out.
var factors = map[bool][]float32{
	false: {1, 0.9, 0.8, 0.7},
	true:  {1, 0.92, 0.85, 0.77, 0.7, 1.08, -1, -0.92, -0.85, -0.77, -0.7, -1.08},
}

// tried are those that are worth their time: of 16 codes or more, steps below 0.8 were the best of no block, neither of BERT's shape nor
// of the real models that it was tried on.
func (g Grid) tried() []float32 {
	f := factors[g.Symmetric]
	if !g.Symmetric && g.High-g.Low >= 15 {
		return f[:3]
	}
	return f
}

// Nearest rounds w, c.K rows by c.N columns, to the nearest codes. The scales and zero points of a block are those that span its
// values and 0. Values must be finite.
func Nearest(c *Codes, w []float32) {
	newTile(c).each(w, func(t *tile) {
		t.span()
		t.round(t.x)
	})
}

// Balanced rounds w as Nearest does, but with the scales and zero points of least squared error, and so that errors of a column
// sum to about 0: what inputs have in common would multiply their sum.
func Balanced(c *Codes, w []float32) {
	newTile(c).each(w, func(t *tile) {
		t.search()
		t.balance(t.x)
	})
}

// A tile is some columns of a block, rows of kernel.BlockCols; columns that the matrix does not have are zeros.
type tile struct {
	*Codes
	grid             kernel.BlockGrid // zero points left out, where it is symmetric
	row, col         int
	rows, cols       int
	x                []float32
	moved            []float32 // x with zero points made whole: see free
	code             []byte
	lo, hi, base     columns
	mid, scale, zero columns
	best             columns // scores of the scales
	shift            [kernel.BlockCols]int32
	carry            []columns // for all tiles of a row, sums of errors
}

// balanced is the most rows that are moved alike.
const balanced = 32

// columns is a number for each column.
type columns = [kernel.BlockCols]float32

func newTile(c *Codes) *tile {
	rows := min(c.K, c.Grid.Block)
	t := &tile{Codes: c, x: make([]float32, rows*kernel.BlockCols), code: make([]byte, rows*kernel.BlockCols)}
	low, high := float32(c.Grid.Low), float32(c.Grid.High)
	t.grid = kernel.BlockGrid{Lo: low, Hi: high, Center: (low + high) / 2, Factors: c.Grid.tried()}
	if c.Grid.Symmetric {
		m := float32(c.Grid.middle())
		t.grid.Lo, t.grid.Hi, t.grid.Center = low-m, high-m, 0
	}
	return t
}

// each goes through the tiles of w, row by row.
func (t *tile) each(w []float32, round func(*tile)) {
	for row := 0; row < t.K; row += t.Grid.Block {
		for col := 0; col < t.N; col += kernel.BlockCols {
			t.load(w, row, col)
			round(t)
			t.store()
		}
	}
}

// load takes the columns from (row, col) on, and their ranges, made to hold 0.
func (t *tile) load(w []float32, row, col int) {
	t.row, t.col = row, col
	t.rows, t.cols = min(t.Grid.Block, t.K-row), min(kernel.BlockCols, t.N-col)
	t.x, t.code = t.x[:t.rows*kernel.BlockCols], t.code[:t.rows*kernel.BlockCols]
	t.lo, t.hi = columns{}, columns{}
	from, stride := w[row*t.N+col:], t.N
	if !t.full() {
		clear(t.x)
		for i := range t.rows {
			copy(t.x[i*kernel.BlockCols:], from[i*t.N:][:t.cols])
		}
		from, stride = t.x, kernel.BlockCols
	}
	kernel.LoadBlock(t.x, &t.lo, &t.hi, from, stride)
}

// full reports whether the matrix has all of the tile's columns.
func (t *tile) full() bool { return t.cols == kernel.BlockCols }

// span takes the scales that span the columns' values.
func (t *tile) span() {
	for j := range t.lo {
		t.scale[j], t.shift[j] = 1, t.Grid.middle()
		if t.lo[j] != 0 || t.hi[j] != 0 {
			t.scale[j], t.shift[j] = t.Grid.over(t.lo[j], t.hi[j])
		}
	}
	t.narrow()
}

// search takes the scales of least error.
func (t *tile) search() {
	steps, middle := 1/(t.grid.Hi-t.grid.Lo), float32(t.Grid.middle())
	for j := range t.lo {
		t.base[j], t.mid[j] = (t.hi[j]-t.lo[j])*steps, (t.lo[j]+t.hi[j])*0.5
		if t.Grid.Symmetric {
			t.base[j], t.mid[j] = max(-t.lo[j], t.hi[j])/-t.grid.Lo, 0
		}
		if t.lo[j] == 0 && t.hi[j] == 0 {
			t.base[j] = 1
		}
		t.scale[j], t.zero[j], t.best[j] = t.base[j], middle, -1
	}
	kernel.SearchBlock(&t.scale, &t.zero, &t.best, t.x, &t.base, &t.mid, t.grid)
	t.narrow()
	t.shifts()
}

// shifts makes zero points of what the search left.
func (t *tile) shifts() {
	for j, z := range t.zero {
		t.shift[j] = int32(z)
		if t.Grid.Symmetric {
			t.shift[j] = t.Grid.middle()
		}
	}
}

// round codes x, the columns or others in their place.
func (t *tile) round(x []float32) {
	dst, stride := t.codes()
	kernel.RoundBlock(dst, stride, x, &t.scale, &t.shift, t.Grid.codes())
	t.keep()
}

// balance codes x, as round does, so that what rows above are too large by is made up for. The last rows are coded again, with what
// they leave themselves in mind.
func (t *tile) balance(x []float32) {
	if t.carry == nil {
		t.carry = make([]columns, (t.N+kernel.BlockCols-1)/kernel.BlockCols)
	}
	carry := &t.carry[t.col/kernel.BlockCols]
	dst, stride := t.codes()
	for i := 0; i < t.rows; i += balanced {
		rows, before := x[i*kernel.BlockCols:min(i+balanced, t.rows)*kernel.BlockCols], *carry
		kernel.BalanceBlock(dst[i*stride:], stride, rows, &t.scale, &t.shift, carry, t.Grid.codes())
		if t.row+i+balanced >= t.K {
			for j, b := range before {
				carry[j] += b
			}
			kernel.BalanceBlock(dst[i*stride:], stride, rows, &t.scale, &t.shift, carry, t.Grid.codes())
		}
	}
	t.keep()
}

// codes is where rows of codes go, and how far they are apart: not to the matrix itself, if it does not have all of the columns.
func (t *tile) codes() (dst []byte, stride int) {
	if t.full() {
		return t.Code[t.row*t.N+t.col:], t.N
	}
	return t.code, kernel.BlockCols
}

// keep moves codes to the matrix that are not there.
func (t *tile) keep() {
	for i := 0; i < t.rows && !t.full(); i++ {
		copy(t.Code[(t.row+i)*t.N+t.col:][:t.cols], t.code[i*kernel.BlockCols:])
	}
}

// store gives out scales and zero points.
func (t *tile) store() {
	at := t.row/t.Grid.Block*t.N + t.col
	copy(t.Scale[at:][:t.cols], t.scale[:])
	copy(t.Zero[at:][:t.cols], t.shift[:])
}
