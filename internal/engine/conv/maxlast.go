package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// maxPoolLayouts: with channels last, maxima are those of all rows of a window and then of its columns, one by one, so
// windows are small.
func maxPoolLayouts(n *op.Node, _ []*ir.Array) op.Layouts {
	const side = 3
	if size := n.Ints("kernel_shape"); len(size) != 2 || size[0] > side || size[1] > side || n.NumOut() > 1 {
		return op.ChannelsFirst
	}
	return op.LastInput
}

// A maxLast pools images with channels last, row by row of the output.
type maxLast[T poolElement] struct {
	*window
	arithmetic[T]
	channels int
	rows     []coveredRow // of the input under a row of the output
	line     []T          // their maxima
	pixels   []T          // a row of the output, if that has channels first
}

func maxPoolLast[T poolElement](c *op.Call, w *window, x, y []T) {
	channels := int(c.In[0].Shape[1])
	pools := make([]*maxLast[T], c.Pool.Workers())
	c.Pool.Slots(len(y)/(w.out[1]*channels), func(i, slot int) {
		if pools[slot] == nil {
			pools[slot] = &maxLast[T]{window: w, arithmetic: arithmeticOf[T](), channels: channels,
				line: make([]T, w.in[1]*channels)}
			if !c.LastOut {
				pools[slot].pixels = make([]T, w.out[1]*channels)
			}
		}
		image, o := i/w.out[0], i%w.out[0]
		pools[slot].row(part(y, image, w.outLen()*channels), part(x, image, w.inLen()*channels), o)
	})
}

// row pools row o of an image.
func (p *maxLast[T]) row(y, x []T, o int) {
	p.rows = p.window.rows(p.rows, o)
	// Rows first, then columns, so that maxima of a column are used by several windows.
	p.combine(p.line, len(p.rows), func(i int) []T { return x[p.rows[i].off*p.channels:][:len(p.line)] })
	row := p.pixels
	if row == nil {
		row = part(y, o, p.out[1]*p.channels)
	}
	for i := range p.out[1] {
		lo, hi := p.inside(1, i)
		first := i*p.stride[1] - p.begin[1] + lo*p.dilation[1]
		p.combine(part(row, i, p.channels), hi-lo,
			func(k int) []T { return part(p.line, first+k*p.dilation[1], p.channels) })
	}
	if p.pixels != nil {
		kernel.TransposeInto(y[o*p.out[1]:], p.outLen(), row, p.channels, p.out[1], p.channels)
	}
}

// combine writes the maxima of n slices, or the lowest number if there are none.
func (p *maxLast[T]) combine(to []T, n int, from func(i int) []T) {
	switch {
	case n <= 0:
		fill(to, lowest[T]())
	case n == 1:
		copy(to, from(0))
	default:
		p.max(to, from(0), from(1))
	}
	for i := 2; i < n; i++ {
		p.max(to, to, from(i))
	}
}
