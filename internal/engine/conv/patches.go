package conv

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// panel is the number of columns that a product requests at once.
const panel = 16

// Patches are the patches under the windows of a convolution as rows of the right operand of a product (im2col): row k
// is kernel tap k%kernelSize of channel k/kernelSize, column n output position n.
type Patches struct {
	*Geometry
	depth, kernelSize, inLen int
	stride                   int   // along the last axis
	along                    []tap // of the last axis
	lo, hi                   int   // output range along the last axis for which all taps are inside the input
	at                       []int32
}

// A tap is one kernel tap along an axis: it is inside the input for the outputs lo to hi-1, the first of them at from.
type tap struct{ lo, hi, from int }

// TableSize is the size in bytes of PatchesOf's memory.
func (g *Geometry) TableSize() int64 { return aligned(4 * int64(g.Depth())) }

// PatchesOf prepares for all images and groups. table is memory of TableSize, aligned to 4 bytes.
func PatchesOf(g *Geometry, table []byte) *Patches {
	last := g.last()
	p := &Patches{Geometry: g, depth: g.Depth(), kernelSize: g.kernelSize(), inLen: g.inLen(), stride: g.stride[last]}
	p.along = make([]tap, g.kernel[last])
	// From lo to hi-1 outputs have all taps inside the input along this axis, so that no bounds are needed there.
	p.hi = math.MaxInt
	for k := range p.along {
		t := &p.along[k]
		t.lo, t.hi, t.from = g.taps(last, k)
		p.lo, p.hi = max(p.lo, t.lo), min(p.hi, t.hi)
	}
	// Offsets are int32, which halves the table that every panel reads.
	if p.InC*p.inLen <= math.MaxInt32 && p.depth > 0 {
		p.tabulate(ir.View[int32](&ir.Array{DType: ir.Int32, Data: table}))
	}
	return p
}

// tabulate records the offset of each row of the operand, relative to the first one.
func (p *Patches) tabulate(at []int32) {
	p.at = at[:p.depth]
	for t := range p.kernelSize {
		off, step, k := 0, 1, t
		for i := p.last(); i >= 0; i-- {
			off += k % p.kernel[i] * p.dilation[i] * step
			step *= p.in[i]
			k /= p.kernel[i]
		}
		for c := range p.InC {
			p.at[c*p.kernelSize+t] = int32(c*p.inLen + off)
		}
	}
}

// Of returns the patches of one image and group, whose elements x starts with, a part at a time. Padding is 0.
func (p *Patches) Of(x Images[float32]) gemm.Panels[float32] {
	if x.isHalf() {
		return (&patches[float32, uint16]{p, x.Halves, kernel.PackHalves, kernel.PackHalvesAt}).fill
	}
	return (&patches[float32, float32]{p, x.Values, kernel.PackLanes, kernel.PackLanesAt}).fill
}

// OfBytes is Of for bytes, with the zero point as padding.
func (p *Patches) OfBytes(x []byte, zero byte) gemm.Panels[byte] {
	pack := func(dst, x []byte, rows, to, from, lane, n, stride int, keep bool) {
		for r := range rows {
			row := dst[r*to:][:panel]
			if !keep && n < panel {
				fill(row, zero)
			}
			if n > 0 {
				stridedCopy(row[lane:lane+n], x[r*from:], stride)
			}
		}
	}
	packAt := func(dst, x []byte, at []int32, _, lane, n, stride int, keep bool) {
		if n == panel && stride == 1 {
			for r, off := range at {
				*(*[panel]byte)(dst[r*panel:]) = [panel]byte(x[off:])
			}
			return
		}
		for r, off := range at {
			pack(dst[r*panel:], x[off:], 1, panel, 0, lane, n, stride, keep)
		}
	}
	return (&patches[byte, byte]{p, x, pack, packAt}).fill
}

// patches writes parts of the right operand for one image and group, of elements of type S.
type patches[T, S any] struct {
	*Patches
	x      []S
	pack   func(dst []T, x []S, rows, to, from, lane, n, stride int, keep bool)    // as kernel.PackLanes
	packAt func(dst []T, x []S, at []int32, reach, lane, n, stride int, keep bool) // as kernel.PackLanesAt
}

// A segment is columns of a panel that are in one row of the output.
type segment struct {
	lane, n int // columns of the panel
	row     int // of the output, over all axes but the last
	from    int // position of the first along the last axis
	off     int // offset of the input row at the kernel's row, -1 for padding
}

// fill writes rows k0 to k1-1 of columns n0 to n1-1.
func (p *patches[T, S]) fill(dst []T, k0, k1, n0, n1 int) {
	var buf [panel]segment
	segments := p.cut(buf[:0], n0, n1)
	// Most columns of a large image: one load of an offset for each row, instead of bounds for each tap.
	if p.at != nil && p.inside(segments) {
		p.fillInside(dst, k0, k1, segments)
		return
	}
	width := len(p.along)
	for t := range p.kernelSize {
		if t%width == 0 {
			for i := range segments {
				segments[i].off = p.under(segments[i].row, t/width)
			}
		}
		// Row k of the operand is channel k/kernelSize and tap k%kernelSize. One tap of all channels at once, as the
		// bounds of the padding are those of the tap.
		c := max(ceilDiv(k0-t, p.kernelSize), 0)
		if rows := ceilDiv(k1-t, p.kernelSize) - c; rows > 0 {
			p.place(dst[(c*p.kernelSize+t-k0)*panel:], p.x[c*p.inLen:], rows, segments, p.along[t%width])
		}
	}
}

func (p *Patches) cut(to []segment, n0, n1 int) []segment {
	width := p.out[p.last()]
	for n := n0; n < n1; {
		s := segment{lane: n - n0, row: n / width, from: n % width}
		s.n = min(width-s.from, n1-n)
		to = append(to, s)
		n += s.n
	}
	return to
}

// inside reports whether no kernel tap is in the padding for any of these columns, and sets the offsets of the input
// rows at the first tap.
func (p *Patches) inside(segments []segment) bool {
	rows := p.kernelSize / len(p.along)
	for i := range segments {
		s := &segments[i]
		if s.from < p.lo || s.from+s.n > p.hi || p.under(s.row, rows-1) < 0 {
			return false
		}
		if s.off = p.under(s.row, 0); s.off < 0 {
			return false
		}
	}
	return true
}

// fillInside writes whole columns, at the offsets of the table.
func (p *patches[T, S]) fillInside(dst []T, k0, k1 int, segments []segment) {
	first := p.along[0]
	for i, s := range segments {
		from := s.off + first.from + (s.from-first.lo)*p.stride
		p.packAt(dst, p.x[from:], p.at[k0:k1], int(p.at[k1-1]), s.lane, s.n, p.stride, i > 0)
	}
}

// under is the offset of the input row at row t of the kernel for row o of the output, or -1.
func (p *Patches) under(o, t int) int {
	off, step := 0, p.in[p.last()]
	for i := p.last() - 1; i >= 0; i-- {
		at := o%p.out[i]*p.Geometry.stride[i] - p.begin[i] + t%p.kernel[i]*p.dilation[i]
		if at < 0 || at >= p.in[i] {
			return -1
		}
		off += at * step
		step *= p.in[i]
		o /= p.out[i]
		t /= p.kernel[i]
	}
	return off
}

// place writes one kernel tap: rows of the panel, one per channel, from the same position of each.
func (p *patches[T, S]) place(dst []T, x []S, rows int, segments []segment, t tap) {
	step := p.kernelSize * panel
	keep := false
	for _, s := range segments {
		a, b := max(s.from, t.lo), min(s.from+s.n, t.hi)
		// A segment in the padding is left out: the first one that is written clears the rest of the panel (keep).
		if s.off < 0 || a >= b {
			continue
		}
		from := s.off + t.from + (a-t.lo)*p.stride
		p.pack(dst, x[from:], rows, step, p.inLen, s.lane+a-s.from, b-a, p.stride, keep)
		keep = true
	}
	// All of the panel is padding.
	if !keep {
		p.pack(dst, x, rows, step, 0, 0, 0, 1, false)
	}
}
