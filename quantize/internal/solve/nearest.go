package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// NewQuantized allocates the quantized values of a matrix of k rows and n columns.
func NewQuantized(k, n int, g Spec) *Quantized { return newQuantized(k, n, g) }

// factors are the clipping ranges that the scale search tries, as fractions of a block's range. Those of symmetric
// weights, as fractions of the maximum magnitude, have either sign, as one end of the levels is further out.
var factors = map[bool][]float32{
	false: {1, 0.9, 0.8, 0.7},
	true:  {1, 0.92, 0.85, 0.77, 0.7, 1.08, -1, -0.92, -0.85, -0.77, -0.7, -1.08},
}

// clippingFactors are the factors of the search: with 16 levels or more, fractions below 0.8 were optimal for no block,
// neither of BERT's shape nor of the real models measured.
func (g Spec) clippingFactors() []float32 {
	f := factors[g.Symmetric]
	if !g.Symmetric && g.High-g.Low >= 15 {
		return f[:3]
	}
	return f
}

// Nearest quantizes w, c.K rows by c.N columns, by round to nearest (RTN). The scale and zero point of a block cover
// the range of its values and 0. Values must be finite.
func Nearest(c *Quantized, w []float32) {
	newTile(c).each(w, func(t *tile) {
		t.span()
		t.round(t.x)
	})
}

// MSE quantizes w with MSE-optimal scales and zero points, and, if c.Spec has it, with error feedback along each
// column, so that the errors of a column sum to about 0.
func MSE(c *Quantized, w []float32) {
	newTile(c).each(w, func(t *tile) {
		t.search()
		t.quantize(t.x)
	})
}

// A tile is kernel.BlockCols columns of a block; columns beyond the matrix are zeros.
type tile struct {
	*Quantized
	spec             kernel.BlockGrid // without zero points if symmetric
	row, col         int
	rows, cols       int
	x                []float32
	shifted          []float32 // x shifted to integer zero points: see quantizeRealZeros
	scaled           []float32 // x, or shifted, where their squares are beyond the range of float32: see searchBlock
	value            []byte
	lo, hi, base     columns
	mid, scale, zero columns
	best             columns // errors of the scales
	shift            [kernel.BlockCols]int32
}

// feedbackRows is the maximum number of rows with one correction.
const feedbackRows = 32

// columns is one number per column.
type columns = [kernel.BlockCols]float32

func newTile(c *Quantized) *tile {
	rows := min(c.K, c.Spec.Block)
	t := &tile{Quantized: c, x: make([]float32, rows*kernel.BlockCols), value: make([]byte, rows*kernel.BlockCols)}
	low, high := float32(c.Spec.Low), float32(c.Spec.High)
	t.spec = kernel.BlockGrid{Lo: low, Hi: high, Center: (low + high) / 2, Factors: c.Spec.clippingFactors()}
	if c.Spec.Symmetric {
		m := float32(c.Spec.middle())
		t.spec.Lo, t.spec.Hi, t.spec.Center = low-m, high-m, 0
	}
	return t
}

// each loops over the tiles of w, row by row.
func (t *tile) each(w []float32, round func(*tile)) {
	for row := 0; row < t.K; row += t.Spec.Block {
		for col := 0; col < t.N; col += kernel.BlockCols {
			t.load(w, row, col)
			round(t)
			t.store()
		}
	}
}

// load reads the columns from (row, col) on, and their ranges, extended to 0.
func (t *tile) load(w []float32, row, col int) {
	t.row, t.col = row, col
	t.rows, t.cols = min(t.Spec.Block, t.K-row), min(kernel.BlockCols, t.N-col)
	t.x, t.value = t.x[:t.rows*kernel.BlockCols], t.value[:t.rows*kernel.BlockCols]
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

// full reports whether all columns of the tile are in the matrix.
func (t *tile) full() bool { return t.cols == kernel.BlockCols }

// span sets the scales that cover the ranges of the columns.
func (t *tile) span() {
	for j := range t.lo {
		t.scale[j], t.shift[j] = 1, t.Spec.middle()
		if t.lo[j] != 0 || t.hi[j] != 0 {
			t.scale[j], t.shift[j] = t.Spec.over(t.lo[j], t.hi[j])
		}
	}
	// Before rounding: values have to be rounded with the scales that a reader multiplies by.
	t.narrow()
}

// search sets the scales of minimum squared error.
func (t *tile) search() {
	steps, middle := 1/(t.spec.Hi-t.spec.Lo), float32(t.Spec.middle())
	for j := range t.lo {
		t.base[j], t.mid[j] = (t.hi[j]-t.lo[j])*steps, (t.lo[j]+t.hi[j])*0.5
		if t.Spec.Symmetric {
			t.base[j], t.mid[j] = max(-t.lo[j], t.hi[j])/-t.spec.Lo, 0
		}
		if t.lo[j] == 0 && t.hi[j] == 0 {
			t.base[j] = 1
		}
		// Below any score: the first scales that are tried replace these.
		t.scale[j], t.zero[j], t.best[j] = t.base[j], middle, -1
	}
	t.searchBlock(t.x, &t.base, &t.mid, &t.best, t.spec)
	t.narrow()
	t.shifts()
}

// searchBlock is kernel.SearchBlock, which sums squares in float32, for columns of any magnitude: those far from 1 are
// multiplied by a power of two.
func (t *tile) searchBlock(x []float32, base, mid, best *columns, spec kernel.BlockGrid) {
	factor, some := columns{}, false
	for j := range factor {
		factor[j] = unit(max(-t.lo[j], t.hi[j]))
		some = some || factor[j] != 1
	}
	if !some {
		kernel.SearchBlock(&t.scale, &t.zero, best, x, base, mid, spec)
		return
	}
	t.scaled = append(t.scaled[:0], x...)
	for i := range t.scaled {
		t.scaled[i] *= factor[i%kernel.BlockCols]
	}
	near, middle := *base, *mid
	for j, f := range factor {
		t.scale[j], near[j], middle[j] = t.scale[j]*f, near[j]*f, middle[j]*f
	}
	kernel.SearchBlock(&t.scale, &t.zero, best, t.scaled, &near, &middle, spec)
	for j, f := range factor {
		t.scale[j] /= f
	}
}

// unit is a power of two that makes a magnitude about 1 if sums of squares of it and of much smaller ones may leave the
// range of float32; else 1.
func unit(peak float32) float32 {
	const near = 30 // sums of 2^60 squares of 2^30 and squares of 2^-60 of 2^-30 are normal numbers
	_, exp := math.Frexp(float64(peak))
	if peak == 0 || exp >= -near && exp <= near {
		return 1
	}
	return float32(math.Ldexp(1, min(-exp, 126))) // whose inverse is a normal number, too
}

// shifts computes the zero points of the search's result.
func (t *tile) shifts() {
	for j, z := range t.zero {
		t.shift[j] = int32(z)
		if t.Spec.Symmetric {
			t.shift[j] = t.Spec.middle()
		}
	}
}

// round rounds x, the columns or values in place of them, to nearest.
func (t *tile) round(x []float32) {
	dst, stride := t.destination()
	kernel.RoundBlock(dst, stride, x, &t.scale, &t.shift, t.Spec.levels())
	t.keep()
}

// quantize rounds x, with error feedback if the Spec has it.
func (t *tile) quantize(x []float32) {
	if t.Spec.Feedback {
		t.balance(x)
	} else {
		t.round(x)
	}
}

// balance rounds x with error feedback: the accumulated error of the rows above is compensated. The last rows are
// rounded again, with their own error included.
func (t *tile) balance(x []float32) {
	if t.Feedback == nil {
		t.Feedback = &Feedback{}
	}
	if t.Feedback.carry == nil {
		t.Feedback.carry = make([]columns, (t.N+kernel.BlockCols-1)/kernel.BlockCols)
	}
	// The error goes on from block to block of a column, and from part to part of the weight: begun anew, bytes would
	// depend on the size of the parts.
	carry := &t.Feedback.carry[t.col/kernel.BlockCols]
	dst, stride := t.destination()
	for i := 0; i < t.rows; i += feedbackRows {
		rows, before := x[i*kernel.BlockCols:min(i+feedbackRows, t.rows)*kernel.BlockCols], *carry
		kernel.BalanceBlock(dst[i*stride:], stride, rows, &t.scale, &t.shift, carry, t.Spec.levels())
		// The rows below a run take up its error; below the last one there are none, so that its own error counts from
		// the start.
		if t.row+i+feedbackRows >= t.K+t.Feedback.Below {
			for j, b := range before {
				carry[j] += b
			}
			kernel.BalanceBlock(dst[i*stride:], stride, rows, &t.scale, &t.shift, carry, t.Spec.levels())
		}
	}
	t.keep()
}

// destination is the place of quantized rows and its stride: scratch memory if the tile is not full.
func (t *tile) destination() (dst []byte, stride int) {
	if t.full() {
		return t.Values[t.row*t.N+t.col:], t.N
	}
	return t.value, kernel.BlockCols
}

// keep copies quantized values of a tile that is not full to the matrix.
func (t *tile) keep() {
	for i := 0; i < t.rows && !t.full(); i++ {
		copy(t.Values[(t.row+i)*t.N+t.col:][:t.cols], t.value[i*kernel.BlockCols:])
	}
}

// store stores scales and zero points.
func (t *tile) store() {
	at := t.row/t.Spec.Block*t.N + t.col
	copy(t.Scale[at:][:t.cols], t.scale[:])
	copy(t.Zero[at:][:t.cols], t.shift[:])
}
