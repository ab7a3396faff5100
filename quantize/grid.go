package quantize

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
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
// short runs do not cost a system call each. For a second pass it keeps the tensor's
// first elements. Close gives its memory back.
type reader struct {
	f     *pass.Floats
	total int64     // the tensor's elements
	kept  []float32 // the first ones
	known int64     // how many of kept are read
	block []float32 // those from at on, of which held are read
	at    int64
	held  int64
	close func()
}

// keepElems is how much of a weight that is gone through twice is kept in between:
// 16 MiB of float32. Reading the rest of larger ones again costs less than the memory.
const keepElems = 4 << 20

// newReader returns a reader for one pass over g's runs, or for two.
func newReader(b *buffers, r io.ReaderAt, dt ir.DType, g grid, passes int) *reader {
	d := &reader{f: pass.NewFloats(r, dt), total: g.elems()}
	var freeKept, freeBlock func()
	d.kept, freeKept = b.takeFloats(b2i(passes > 1) * min(d.total, keepElems))
	d.block, freeBlock = b.takeFloats(b2i(int64(len(d.kept)) < d.total) * g.window())
	d.close = func() { freeKept(); freeBlock() }
	return d
}

// next returns the elements of q, valid until the next call.
func (r *reader) next(q run) ([]float32, error) {
	if end := q.at + q.n; end <= int64(len(r.kept)) {
		return r.kept[q.at:end], r.keep(end)
	}
	if q.at < r.at || q.at+q.n > r.at+r.held {
		r.at, r.held = q.at, min(int64(len(r.block)), r.total-q.at)
		if err := r.f.Read(r.block[:r.held], r.at); err != nil {
			return nil, err
		}
	}
	return r.block[q.at-r.at:][:q.n], nil
}

// keep reads on until end, a block at a time.
func (r *reader) keep(end int64) error {
	for r.known < end {
		n := min(pass.Block, int64(len(r.kept))-r.known)
		if err := r.f.Read(r.kept[r.known:r.known+n], r.known); err != nil {
			return err
		}
		r.known += n
	}
	return nil
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
