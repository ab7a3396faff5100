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
type ScaleLayout struct{ batch, rows, channels, inner int64 }

func (g ScaleLayout) NumScales() int64 { return g.batch * g.channels }
func (g ScaleLayout) Elems() int64     { return g.batch * g.rows * g.channels * g.inner }

// whole is the grid of one scale for n elements.
func PerTensorLayout(n int64) ScaleLayout { return ScaleLayout{1, 1, 1, n} }

// alongRows is the grid of one scale for each of n runs of len elements.
func PerRowLayout(n, len int64) ScaleLayout { return ScaleLayout{1, 1, n, len} }

// alongCols is the grid of one scale for each column of batch matrices.
func PerColumnLayout(batch, rows, cols int64) ScaleLayout { return ScaleLayout{batch, rows, cols, 1} }

// onAxis is the grid of one scale for each index of one axis.
func PerAxisLayout(shape []int64, axis int) ScaleLayout {
	g := ScaleLayout{1, 1, shape[axis], 1}
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
type segment struct {
	at, n int64
	first int64
}

// runs calls do for consecutive runs of at most pass.Block elements, or of one row
// where a row is longer.
func (g ScaleLayout) segments(do func(segment) error) error {
	if g.inner == 1 && g.rows > 1 {
		return g.rowSegments(do)
	}
	chunks := g.batch * g.rows * g.channels
	for k := range chunks {
		scale := k/(g.rows*g.channels)*g.channels + k%g.channels
		for i := int64(0); i < g.inner; i += pass.Block {
			if err := do(segment{k*g.inner + i, min(pass.Block, g.inner-i), scale}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g ScaleLayout) rowSegments(do func(segment) error) error {
	rows := max(1, pass.Block/max(1, g.channels))
	for b := range g.batch {
		for r := int64(0); r < g.rows; r += rows {
			n := min(rows, g.rows-r)
			if err := do(segment{(b*g.rows + r) * g.channels, n * g.channels, b * g.channels}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cols reports whether a run is whole rows of columns with a scale each.
func (g ScaleLayout) columnwise() bool { return g.inner == 1 && g.rows > 1 }

// window is the most elements that a reader of g's runs holds.
func (g ScaleLayout) bufferElems() int64 {
	w := min(g.Elems(), pass.Block)
	if g.columnwise() {
		w = max(w, g.channels)
	}
	return w
}

// A reader hands out runs of a float tensor from blocks that it reads ahead, so that
// short runs do not cost a system call each. Close gives its buffer back.
type segmentReader struct {
	f         *pass.Floats
	buf       []float32
	at, total int64 // the block's first element; the tensor's elements
	held      int64
	whole     bool // buf takes the tensor as a whole, block by block as it is asked for
	close     func()
}

// holdElems is the size up to which a weight that is gone through twice is held in
// between: 12 MiB of float32. Reading larger ones again costs less than the memory.
const maxHeldElems = 3 << 20

// newReader returns a reader for one pass over g's runs, or for two.
func newSegmentReader(b *BufferPool, r io.ReaderAt, dt ir.DType, g ScaleLayout, passes int) *segmentReader {
	d := &segmentReader{f: pass.NewFloats(r, dt), total: g.Elems()}
	n := g.bufferElems()
	if d.whole = passes > 1 && d.total <= maxHeldElems; d.whole {
		n = d.total
	}
	d.buf, d.close = b.takeFloats(n)
	return d
}

// next returns the elements of q, valid until the next call.
func (r *segmentReader) next(q segment) ([]float32, error) {
	if r.whole {
		return r.readWhole(q)
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
func (r *segmentReader) readWhole(q segment) ([]float32, error) {
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
type minMaxObserver struct {
	bits   []uint32
	lo, hi []float32
}

func newMinMaxObserver(n int64, s QuantSpec) *minMaxObserver {
	m := &minMaxObserver{bits: make([]uint32, n)}
	if !s.Symmetric {
		m.lo, m.hi = make([]float32, n), make([]float32, n) // zero always has a code
	}
	return m
}

func (m *minMaxObserver) observe(g ScaleLayout, q segment, x []float32) {
	if g.columnwise() {
		cols := m.bits[q.first:][:g.channels]
		kernel.ColAbsMaxBits(cols, x)
		if m.lo != nil {
			kernel.ColMinMax(m.lo[q.first:][:g.channels], m.hi[q.first:][:g.channels], x)
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
func (m *minMaxObserver) qparams(s QuantSpec, i int64, tensor string) (scale float32, zero int32, err error) {
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
	scale, zero, ok := s.QParams(lo, hi)
	if !ok {
		return 0, 0, &pass.Unfit{Tensor: tensor, Reason: fmt.Sprintf("its largest magnitude, %g, gives no scale of normal float32 size", max(-lo, hi))}
	}
	return scale, zero, nil
}

// An affine is every scale and zero point of a tensor.
type QParams struct {
	Scale     []float32
	ZeroPoint []int32 // nil where all are the scheme's
}

// measure reads the whole tensor for its scales.
func ObserveQParams(ctx context.Context, in io.ReaderAt, t *ir.Tensor, g ScaleLayout, s QuantSpec) (*QParams, error) {
	r := newSegmentReader(nil, in, t.DType, g, 1)
	defer r.close()
	return r.observe(ctx, t, g, s)
}

func (r *segmentReader) observe(ctx context.Context, t *ir.Tensor, g ScaleLayout, s QuantSpec) (*QParams, error) {
	m := newMinMaxObserver(g.NumScales(), s)
	err := g.segments(func(q segment) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		m.observe(g, q, x)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return m.all(s, t.Name)
}

func (m *minMaxObserver) all(s QuantSpec, tensor string) (*QParams, error) {
	a := newQParams(int64(len(m.bits)), s)
	for i := range m.bits {
		scale, zero, err := m.qparams(s, int64(i), tensor)
		if err != nil {
			return nil, err
		}
		a.set(i, scale, zero)
	}
	return a, nil
}

func newQParams(n int64, s QuantSpec) *QParams {
	a := &QParams{Scale: make([]float32, n)}
	if !s.Symmetric {
		a.ZeroPoint = make([]int32, n)
	}
	return a
}

func (a *QParams) set(i int, scale float32, zero int32) {
	a.Scale[i] = scale
	if a.ZeroPoint != nil {
		a.ZeroPoint[i] = zero
	}
}

// zeroOf is the zero point of scale i.
func (a *QParams) zeroPointOf(s QuantSpec, i int64) int32 {
	if a.ZeroPoint == nil {
		return s.ZeroPoint()
	}
	return a.ZeroPoint[i]
}
