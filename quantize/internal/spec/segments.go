package spec

import (
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A segment is contiguous elements. For columnwise layouts it is whole rows, and first is the scale of its first
// column; else all of it has scale first.
type segment struct {
	at, n int64
	first int64
}

// segments calls do for consecutive segments of at most a piece, or of one row if a row is longer.
func (g ScaleLayout) segments(do func(segment) error) error {
	if g.columnwise() {
		return g.rowSegments(do)
	}
	chunks, piece := g.batch*g.rows*g.channels, g.limit.Elems()
	for k := range chunks {
		// Chunks are batch × rows × channels; scales are batch × channels.
		scale := k/(g.rows*g.channels)*g.channels + k%g.channels
		for i := int64(0); i < g.inner; i += piece {
			if err := do(segment{k*g.inner + i, min(piece, g.inner-i), scale}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g ScaleLayout) rowSegments(do func(segment) error) error {
	rows := max(1, g.limit.Elems()/max(1, g.channels))
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

// columnwise reports whether a segment is whole rows of columns with a scale each.
func (g ScaleLayout) columnwise() bool { return g.inner == 1 && g.rows > 1 }

// bufferElems is the maximum number of elements that a reader of segments holds.
func (g ScaleLayout) bufferElems() int64 {
	w := min(g.Elems(), g.limit.Elems())
	if g.columnwise() {
		w = max(w, g.channels)
	}
	return w
}

// A segmentBuffer reads segments of a float tensor from larger blocks, so that short segments do not need a system call
// each. close frees its buffer.
type segmentBuffer struct {
	f         *pass.Floats
	buf       []float32
	at, total int64 // the block's first element; the tensor's elements
	piece     int64
	buffered  int64
	whole     bool // buf holds the whole tensor, read on demand block by block
	close     func()
}

// maxBuffered is the number of elements up to which a weight that is read twice stays in memory: 12 MiB of float32.
// Reading larger ones again costs less than the memory.
func (l PieceLimit) maxBuffered() int64 { return 12 * l.Elems() }

// newSegmentBuffer returns a reader for one or two passes over g's segments.
func newSegmentBuffer(b *BufferPool, r io.ReaderAt, dt ir.DType, g ScaleLayout, passes int) *segmentBuffer {
	d := &segmentBuffer{f: pass.NewFloats(r, dt), total: g.Elems(), piece: g.limit.Elems()}
	n := g.bufferElems()
	// Read twice, a weight of a few MiB stays in memory instead.
	if d.whole = passes > 1 && d.total <= g.limit.maxBuffered(); d.whole {
		n = d.total
	}
	d.buf, d.close = b.takeFloats(n)
	return d
}

// next returns the elements of q, valid until the next call.
func (r *segmentBuffer) next(q segment) ([]float32, error) {
	if r.whole {
		return r.readWhole(q)
	}
	if q.at < r.at || q.at+q.n > r.at+r.buffered {
		// From q on: segments are read in order, so that nothing before it is needed again.
		r.at, r.buffered = q.at, min(int64(len(r.buf)), r.total-q.at)
		if err := r.f.Read(r.buf[:r.buffered], r.at); err != nil {
			return nil, err
		}
	}
	return r.buf[q.at-r.at:][:q.n], nil
}

// readWhole reads up to the end of q, a block at a time, and keeps everything.
func (r *segmentBuffer) readWhole(q segment) ([]float32, error) {
	for r.buffered < q.at+q.n {
		n := min(r.piece, r.total-r.buffered)
		if err := r.f.Read(r.buf[r.buffered:r.buffered+n], r.buffered); err != nil {
			return nil, err
		}
		r.buffered += n
	}
	return r.buf[q.at:][:q.n], nil
}
