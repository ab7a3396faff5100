package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A depthwiseGradient is the gradient of a depthwise convolution's weights. Elements of a channel that are a stride
// apart are copied to a plane, with padding and with rows slightly wider than the output's; the output's gradient is
// copied with rows of the same width. A kernel tap is then an offset in one of the planes, and its gradient the sum of
// products at that offset. One product computes all offsets of a plane: row i of its left operand is the output's
// gradient shifted by i rows, column j of its right one the plane shifted by j elements.
type depthwiseGradient struct {
	*Geometry
	down, across int // maximum offsets in a plane
	width        int // of a row of a plane
}

// depthAtOnce is the number of products that are summed before rounding: it affects the result.
const depthAtOnce = 512

// depthwiseGradientOf is nil if the convolution is not depthwise.
func depthwiseGradientOf(g *Geometry) *depthwiseGradient {
	d := DepthwiseOf(g)
	if d == nil {
		return nil
	}
	c := &depthwiseGradient{Geometry: d.Geometry, down: (d.span(0) - 1) / d.stride[0],
		across: (d.span(1) - 1) / d.stride[1]}
	// An offset of up to across elements from the last column stays in its row of the plane.
	c.width = c.out[1] + c.across
	return c
}

// length is the number of products per offset.
func (c *depthwiseGradient) length() int { return (c.out[0] + c.down) * c.width }

// sizes are those of the scratch memory: the output's gradient with down rows of zeros on both sides, a plane followed
// by the elements that a product may read, and the sums. planes are those of a channel of the input and of the output's
// gradient, if they are Float16.
func (c *depthwiseGradient) sizes() (output, plane, sums int) {
	return c.length() + c.down*c.width, c.length() + ceilDiv(c.across+1, panel)*panel, (c.down + 1) * (c.across + 1)
}

func (c *depthwiseGradient) planes(h Halves) (in, out int) {
	if h.X {
		in = c.InArea()
	}
	if h.Y {
		out = c.OutArea()
	}
	return in, out
}

func (c *depthwiseGradient) work(workers int, h Halves) int64 {
	output, plane, sums := c.sizes()
	in, out := c.planes(h)
	return int64(workers) * aligned(4*int64(output+plane+sums+in+out))
}

func (c *depthwiseGradient) run(p *op.Pool, work []byte, dw []float32, x, dy Images[float32]) {
	output, plane, sums := c.sizes()
	h := Halves{x.isHalf(), dy.isHalf()}
	in, out := c.planes(h)
	size := int(c.work(1, h))
	// A channel is summed by one worker over all images: the order of the sums does not depend on the number of workers.
	p.Slots(c.Groups*c.OutC, func(m, slot int) {
		all := kernel.Words[float32](work[slot*size:][:size])
		take := func(n int) []float32 {
			b := all[:n:n]
			all = all[n:]
			return b
		}
		l := &depthwiseChannel{c, m, x, dy, take(output), take(plane), take(sums), take(in), take(out)}
		l.run(part(dw, m, c.kernelSize()))
	})
}

// A depthwiseChannel is one channel of the output.
type depthwiseChannel struct {
	*depthwiseGradient
	channel             int
	x, dy               Images[float32]
	output, plane, sums []float32
	inPlane, outPlane   []float32
}

func (l *depthwiseChannel) run(dw []float32) {
	for image := range l.Batch {
		l.copyOutput(read(l.dy, (image*l.Groups*l.OutC+l.channel)*l.OutArea(), l.OutArea(), l.outPlane))
		x := read(l.x, (image*l.Groups+l.channel/l.OutC)*l.InArea(), l.InArea(), l.inPlane)
		// A stride beyond the window has phases without a tap.
		for i := range min(l.stride[0], l.span(0)) {
			for j := range min(l.stride[1], l.span(1)) {
				l.copyPlane(x, i, j)
				l.multiply()
				l.take(dw, i, j)
			}
		}
	}
}

func (l *depthwiseChannel) copyOutput(dy []float32) {
	clear(l.output)
	for r := range l.out[0] {
		copy(l.output[(l.down+r)*l.width:], part(dy, r, l.out[1]))
	}
}

// copyPlane copies the elements i rows and j columns after those of the first kernel tap.
func (l *depthwiseChannel) copyPlane(x []float32, i, j int) {
	columns := phaseOf(j-l.begin[1], l.stride[1], l.in[1], l.width)
	for r := range l.out[0] + l.down {
		to := part(l.plane, r, l.width)
		at := r*l.stride[0] + i - l.begin[0]
		if at < 0 || at >= l.in[0] {
			clear(to)
			continue
		}
		columns.copy(to, part(x, at, l.in[1]), l.stride[1])
	}
	clear(l.plane[l.length():])
}

// multiply sums for all offsets.
func (l *depthwiseChannel) multiply() {
	for k := 0; k < l.length(); k += depthAtOnce {
		n := min(depthAtOnce, l.length()-k)
		// Rows of both operands overlap in memory: row i+1 begins a row of the plane after row i, and column j+1 an
		// element after column j. Elements of the last offsets read the zeros that copyOutput and copyPlane leave.
		left := kernel.GemmA{Data: l.output[k:], Strip: kernel.GemmRows() * l.width, Row: l.width, K: 1}
		right := kernel.GemmB{Data: l.plane[k:], Panel: panel, K: 1}
		kernel.GemmFloat(l.sums, l.across+1, left, right, l.down+1, l.across+1, n, k > 0)
	}
}

// take adds the sums for the kernel taps of this plane.
func (l *depthwiseChannel) take(dw []float32, i, j int) {
	for t := range dw {
		y, x := t/l.kernel[1]*l.dilation[0]-i, t%l.kernel[1]*l.dilation[1]-j
		if y >= 0 && x >= 0 && y%l.stride[0] == 0 && x%l.stride[1] == 0 {
			// The output's gradient begins at row down of its plane, and row i of the product is it shifted by i.
			dw[t] += l.sums[(l.down-y/l.stride[0])*(l.across+1)+x/l.stride[1]]
		}
	}
}
