package quantize

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A grid says which elements of a tensor share a scale. Element (b, r, c, i) of
// batch × rows × chans × inner belongs to scale b·chans + c.
type grid struct{ batch, rows, chans, inner int64 }

func (g grid) scales() int64 { return g.batch * g.chans }
func (g grid) elems() int64  { return g.batch * g.rows * g.chans * g.inner }

// whole is the grid of one scale for n elements.
func whole(n int64) grid { return grid{1, 1, 1, n} }

// alongRows is the grid of one scale for each of n runs of len elements.
func alongRows(n, len int64) grid { return grid{1, 1, n, len} }

// alongCols is the grid of one scale for each column of batch matrices.
func alongCols(batch, rows, cols int64) grid { return grid{batch, rows, cols, 1} }

// onAxis is the grid of one scale for each index of one axis.
func onAxis(shape []int64, axis int) grid {
	g := grid{1, 1, shape[axis], 1}
	for i, d := range shape {
		switch {
		case i < axis:
			g.rows *= d
		case i > axis:
			g.inner *= d
		}
	}
	return g
}

// A run is a stretch of elements that lie together. Where the grid's inner size is 1
// it is whole rows, and first is the scale of its first column; else all of it
// belongs to scale first.
type run struct {
	at, n int64
	first int64
}

// runs calls do for consecutive runs of at most pass.Block elements, or of one row
// where a row is longer.
func (g grid) runs(do func(run) error) error {
	if g.inner == 1 && g.rows > 1 {
		return g.rowRuns(do)
	}
	chunks := g.batch * g.rows * g.chans
	for k := range chunks {
		scale := k/(g.rows*g.chans)*g.chans + k%g.chans
		for i := int64(0); i < g.inner; i += pass.Block {
			if err := do(run{k*g.inner + i, min(pass.Block, g.inner-i), scale}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g grid) rowRuns(do func(run) error) error {
	rows := max(1, pass.Block/max(1, g.chans))
	for b := range g.batch {
		for r := int64(0); r < g.rows; r += rows {
			n := min(rows, g.rows-r)
			if err := do(run{(b*g.rows + r) * g.chans, n * g.chans, b * g.chans}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cols reports whether a run is whole rows of columns with a scale each.
func (g grid) cols() bool { return g.inner == 1 && g.rows > 1 }

// window is the most elements that a reader of g's runs holds.
func (g grid) window() int64 {
	w := min(g.elems(), pass.Block)
	if g.cols() {
		w = max(w, g.chans)
	}
	return w
}

// A reader hands out runs of a float tensor from blocks that it reads ahead, so that
// short runs do not cost a system call each. Close gives its buffer back.
type reader struct {
	f         *pass.Floats
	buf       []float32
	at, total int64 // the block's first element; the tensor's elements
	held      int64
	whole     bool // buf takes the tensor as a whole, block by block as it is asked for
	close     func()
}

// holdElems is the size up to which a weight that is gone through twice is held in
// between: 12 MiB of float32. Reading larger ones again costs less than the memory.
const holdElems = 3 << 20

// newReader returns a reader for one pass over g's runs, or for two.
func newReader(b *buffers, r io.ReaderAt, dt ir.DType, g grid, passes int) *reader {
	d := &reader{f: pass.NewFloats(r, dt), total: g.elems()}
	n := g.window()
	if d.whole = passes > 1 && d.total <= holdElems; d.whole {
		n = d.total
	}
	d.buf, d.close = b.takeFloats(n)
	return d
}

// next returns the elements of q, valid until the next call.
func (r *reader) next(q run) ([]float32, error) {
	if r.whole {
		return r.hold(q)
	}
	if q.at < r.at || q.at+q.n > r.at+r.held {
		r.at, r.held = q.at, min(int64(len(r.buf)), r.total-q.at)
		if err := r.f.Read(r.buf[:r.held], r.at); err != nil {
			return nil, err
		}
	}
	return r.buf[q.at-r.at:][:q.n], nil
}

// hold reads on up to the end of q, a block at a time, and keeps everything.
func (r *reader) hold(q run) ([]float32, error) {
	for r.held < q.at+q.n {
		n := min(pass.Block, r.total-r.held)
		if err := r.f.Read(r.buf[r.held:r.held+n], r.held); err != nil {
			return nil, err
		}
		r.held += n
	}
	return r.buf[q.at:][:q.n], nil
}

// ranges is what is known of each scale's elements: the largest magnitude's bits, and
// for asymmetric schemes the extremes.
type ranges struct {
	bits   []uint32
	lo, hi []float32
}

func newRanges(n int64, s scheme) *ranges {
	m := &ranges{bits: make([]uint32, n)}
	if !s.symmetric {
		m.lo, m.hi = make([]float32, n), make([]float32, n) // zero always has a code
	}
	return m
}

func (m *ranges) add(g grid, q run, x []float32) {
	if g.cols() {
		cols := m.bits[q.first:][:g.chans]
		kernel.ColAbsMaxBits(cols, x)
		if m.lo != nil {
			kernel.ColMinMax(m.lo[q.first:][:g.chans], m.hi[q.first:][:g.chans], x)
		}
		return
	}
	m.bits[q.first] = max(m.bits[q.first], kernel.AbsMaxBits(x))
	if m.lo != nil {
		lo, hi := kernel.MinMax(x)
		m.lo[q.first], m.hi[q.first] = min(m.lo[q.first], lo), max(m.hi[q.first], hi)
	}
}

const infBits = 0x7f800000

// fit turns the range of scale i into the scale and zero point.
func (m *ranges) fit(s scheme, i int64, tensor string) (scale float32, zero int32, err error) {
	switch b := m.bits[i]; {
	case b > infBits:
		return 0, 0, &pass.Unfit{Tensor: tensor, Reason: "it holds NaN"}
	case b == infBits:
		return 0, 0, &pass.Unfit{Tensor: tensor, Reason: "it holds infinities"}
	}
	hi := math.Float32frombits(m.bits[i])
	lo := -hi
	if m.lo != nil {
		lo, hi = m.lo[i], m.hi[i]
	}
	scale, zero, ok := s.fit(lo, hi)
	if !ok {
		return 0, 0, &pass.Unfit{Tensor: tensor, Reason: fmt.Sprintf("its largest magnitude, %g, gives no scale of normal float32 size", max(-lo, hi))}
	}
	return scale, zero, nil
}

// An affine is every scale and zero point of a tensor.
type affine struct {
	scale []float32
	zero  []int32 // nil where all are the scheme's
}

// measure reads the whole tensor for its scales.
func measure(ctx context.Context, in io.ReaderAt, t *ir.Tensor, g grid, s scheme) (*affine, error) {
	r := newReader(nil, in, t.DType, g, 1)
	defer r.close()
	return r.measure(ctx, t, g, s)
}

func (r *reader) measure(ctx context.Context, t *ir.Tensor, g grid, s scheme) (*affine, error) {
	m := newRanges(g.scales(), s)
	err := g.runs(func(q run) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		m.add(g, q, x)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return m.affine(s, t.Name)
}

func (m *ranges) affine(s scheme, tensor string) (*affine, error) {
	a := newAffine(int64(len(m.bits)), s)
	for i := range m.bits {
		scale, zero, err := m.fit(s, int64(i), tensor)
		if err != nil {
			return nil, err
		}
		a.set(i, scale, zero)
	}
	return a, nil
}

func newAffine(n int64, s scheme) *affine {
	a := &affine{scale: make([]float32, n)}
	if !s.symmetric {
		a.zero = make([]int32, n)
	}
	return a
}

func (a *affine) set(i int, scale float32, zero int32) {
	a.scale[i] = scale
	if a.zero != nil {
		a.zero[i] = zero
	}
}

// zeroOf is the zero point of scale i.
func (a *affine) zeroOf(s scheme, i int64) int32 {
	if a.zero == nil {
		return s.zero()
	}
	return a.zero[i]
}
