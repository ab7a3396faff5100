package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// layouts are those that a convolution supports: any for packed weights of 1×1 kernels and Winograd's algorithm, any of the output for other packed weights, and equal ones if it is depthwise, with whole vectors
// of channels. Results are bit-identical to those of images with channels first.
func layouts(n *op.Node, in []*ir.Array) op.Layouts {
	w := op.Opt(in, 1)
	if w == nil || w.DType != ir.Float || len(w.Shape) != 4 {
		return op.ChannelsFirst
	}
	_, isPacked := n.State.(packedWeights)
	_, transformed := n.State.(winogradWeights)
	switch {
	case transformed && groupsOf(n) == 1 && w.Shape[0]%panel == 0 && w.Shape[1]%panel == 0:
		return op.AnyLayouts
	case isPacked && isPointwise(n, w):
		return op.AnyLayouts
	case isPacked:
		return op.LastOutput
	case n.State == nil && n.NumIn <= 3 && w.Shape[1] == 1 && w.Shape[0] == groupsOf(n) && w.Shape[0]%kernel.DepthwiseGroup == 0:
		return op.EqualLayouts
	}
	return op.ChannelsFirst
}

// lastWork is the size of the scratch memory of runLast.
func (d *Depthwise) lastWork() int64 {
	return aligned(4*int64(d.Groups*d.kernelSize())) + aligned(4*int64(d.Groups))
}

// runLast computes images with channels last, row by row. Windows slide over the input where it is: columns of the output whose windows exceed
// the image are computed one by one, from the taps inside it.
func (d *Depthwise) runLast(p *op.Pool, work []byte, j job) {
	channels, buf := d.Groups, scratch[float32](work)
	w, first := buf.take(channels*d.kernelSize()), j.bias
	kernel.TransposeInto(w, channels, j.w, d.kernelSize(), channels, d.kernelSize())
	if first == nil {
		first = buf.take(channels)
		clear(first)
	}
	rows, wide := d.out[0], d.out[1]*channels
	grain := max(minTileWork/(wide*d.kernelSize()), 1)
	p.Rows(d.Batch*rows, grain, func(from, to int) {
		window := &kernel.FloatWindow{W: w, First: first}
		for r := from; r < to; r++ {
			row := part(j.y.Values, r, wide)
			d.slideRow(window, row, part(j.x.Values, r/rows, d.inLen()*channels), r%rows)
			if j.activate != nil {
				j.activate(row)
			}
		}
	})
}

// slideRow computes row o of an image.
func (d *Depthwise) slideRow(window *kernel.FloatWindow, y, x []float32, o int) {
	channels, wide, n := d.Groups, d.kernel[1], 0
	for column := 0; column < d.out[1]; column += n {
		lo, hi := d.inside(1, column)
		n = 1
		if hi-lo == wide { // as are those up to the first whose window exceeds the image
			n = max((d.in[1]-d.span(1)+d.begin[1])/d.stride[1]+1, column+1) - column
			n = min(n, d.out[1]-column)
		}
		window.Taps = window.Taps[:0]
		top, bottom := d.inside(0, o)
		for i := top; i < bottom; i++ {
			line := (o*d.stride[0] - d.begin[0] + i*d.dilation[0]) * d.in[1]
			for k := lo; k < hi; k++ {
				at := line + column*d.stride[1] - d.begin[1] + k*d.dilation[1]
				window.Taps = append(window.Taps, kernel.Tap{X: at * channels, W: (i*wide + k) * channels})
			}
		}
		window.Slide(y[column*channels:], channels, x, d.stride[1]*channels, n)
	}
}
