package conv

import (
	"github.com/mcompress/mcompress/engine/gemm"
	"github.com/mcompress/mcompress/kernel"
)

// panel is the columns that a product asks for at once.
const panel = 16

// Patches gives the patches under the window in one image and group, a part at a time, as rows
// of the right operand: row k is place k%taken of the kernel in channel k/taken, column n place n
// of the output. What lies in the padding is 0.
func Patches(g *Geometry, x []float32) gemm.Panels[float32] {
	return patchesOf(g, x, kernel.PackLanes)
}

// BytePatches is Patches of bytes, with the zero point in the padding.
func BytePatches(g *Geometry, x []byte, zero byte) gemm.Panels[byte] {
	return patchesOf(g, x, func(dst, x []byte, rows, to, from, lane, n, stride int, keep bool) {
		for r := range rows {
			row := dst[r*to:][:panel]
			if !keep {
				fill(row, zero)
			}
			for i := range n {
				row[lane+i] = x[r*from+i*stride]
			}
		}
	})
}

// A packer is kernel.PackLanes, or does the same for another type.
type packer[T any] func(dst, x []T, rows, to, from, lane, n, stride int, keep bool)

func patchesOf[T any](g *Geometry, x []T, pack packer[T]) gemm.Panels[T] {
	last := g.last()
	along := make([]tap, g.kernel[last])
	for k := range along {
		along[k].lo, along[k].hi, along[k].from = g.taps(last, k)
	}
	p := &patches[T]{Geometry: g, x: x, pack: pack, along: along}
	return p.fill
}

// patches writes parts of the right operand.
type patches[T any] struct {
	*Geometry
	x     []T
	pack  packer[T]
	along []tap // of the last axis
}

// A tap is for one place of the kernel along an axis: the outputs lo to hi-1 for which it lies inside of
// the input, the first of them at from.
type tap struct{ lo, hi, from int }

// A segment is columns of a panel that lie in one row of the output.
type segment struct {
	lane, n int // columns of the panel
	row     int // of the output, over all axes but the last
	from    int // place of the first along the last axis
	off     int // of the input's row that lies under the kernel's, -1 for padding
}

// fill goes through the kernel place by place and writes the rows of all channels for each: they
// come from the same place of each channel.
func (p *patches[T]) fill(dst []T, k0, k1, n0, n1 int) {
	var room [panel]segment
	segments := p.cut(room[:0], n0, n1)
	taken, width := p.taken(), len(p.along)
	for t := range taken {
		if t%width == 0 {
			for i := range segments {
				segments[i].off = p.under(segments[i].row, t/width)
			}
		}
		c := max(ceilDiv(k0-t, taken), 0)
		rows := ceilDiv(k1-t, taken) - c
		if rows <= 0 {
			continue
		}
		p.place(dst[(c*taken+t-k0)*panel:], p.x[c*p.inLen():], rows, segments, p.along[t%width])
	}
}

func (p *patches[T]) cut(to []segment, n0, n1 int) []segment {
	width := p.out[p.last()]
	for n := n0; n < n1; {
		s := segment{lane: n - n0, row: n / width, from: n % width}
		s.n = min(width-s.from, n1-n)
		to = append(to, s)
		n += s.n
	}
	return to
}

// under is the offset of the row of the input that row t of the kernel lies on for row o of the
// output, or -1.
func (p *patches[T]) under(o, t int) int {
	off, step := 0, p.in[p.last()]
	for i := p.last() - 1; i >= 0; i-- {
		at := o%p.out[i]*p.stride[i] - p.begin[i] + t%p.kernel[i]*p.dilation[i]
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

// place writes rows of the panel, one for each channel.
func (p *patches[T]) place(dst, x []T, rows int, segments []segment, t tap) {
	step, stride := p.taken()*panel, p.stride[p.last()]
	keep := false
	for _, s := range segments {
		a, b := max(s.from, t.lo), min(s.from+s.n, t.hi)
		if s.off < 0 || a >= b {
			continue
		}
		from := s.off + t.from + (a-t.lo)*stride
		p.pack(dst, x[from:], rows, step, p.inLen(), s.lane+a-s.from, b-a, stride, keep)
		keep = true
	}
	if !keep {
		p.pack(dst, x, rows, step, 0, 0, 0, 1, false)
	}
}
