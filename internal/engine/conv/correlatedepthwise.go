package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A depthCorrelation is the gradient of a depthwise convolution's weights. Elements of a channel that lie a stride apart are
// laid down as a plane of their own, padding included, with rows as wide as the output's and a bit more, and the output's
// gradient with rows of the same width. A place of the kernel is then a distance in one of the planes, and its
// gradient the sum of the products at that distance. All of a plane's come out of one product: row i of its left operand is the
// output's gradient moved by i rows, column j of its right one the plane moved by j elements.
type depthCorrelation struct {
	*Geometry
	down, across int // greatest distances in a plane
	width        int // of a row of a plane
}

// depthAtOnce is the products that are summed before the sum is rounded: it is part of what the result is.
const depthAtOnce = 512

// depthCorrelationOf is nil where the convolution is not depthwise.
func depthCorrelationOf(g *Geometry) *depthCorrelation {
	d := DepthwiseOf(g)
	if d == nil {
		return nil
	}
	c := &depthCorrelation{Geometry: d.Geometry, down: (d.span(0) - 1) / d.stride[0], across: (d.span(1) - 1) / d.stride[1]}
	c.width = c.out[1] + c.across
	return c
}

// length is the products for one distance.
func (c *depthCorrelation) length() int { return (c.out[0] + c.down) * c.width }

// sizes of the scratch: the output's gradient with down rows of nothing on both sides, a plane and as much behind it as a
// product may touch, and the sums.
func (c *depthCorrelation) sizes() (output, plane, sums int) {
	return c.length() + c.down*c.width, c.length() + ceilDiv(c.across+1, panel)*panel, (c.down + 1) * (c.across + 1)
}

func (c *depthCorrelation) work(workers int) int64 {
	output, plane, sums := c.sizes()
	return int64(workers) * aligned(4*int64(output+plane+sums))
}

func (c *depthCorrelation) run(p *op.Pool, work []byte, dw, x, dy []float32) {
	output, plane, sums := c.sizes()
	size := int(aligned(4 * int64(output+plane+sums)))
	p.Slots(c.Groups*c.OutC, func(m, slot int) {
		room := kernel.Words[float32](work[slot*size:][:size])
		l := &depthLayer{c, m, x, dy, room[:output], room[output:][:plane], room[output+plane:][:sums]}
		l.run(part(dw, m, c.taken()))
	})
}

// A depthLayer is one channel of the output.
type depthLayer struct {
	*depthCorrelation
	channel             int
	x, dy               []float32
	output, plane, sums []float32
}

func (l *depthLayer) run(dw []float32) {
	for image := range l.Batch {
		l.layOutput(part(l.dy, image*l.Groups*l.OutC+l.channel, l.Places()))
		x := part(l.x, image*l.Groups+l.channel/l.OutC, l.Area())
		for i := range min(l.stride[0], l.span(0)) {
			for j := range min(l.stride[1], l.span(1)) {
				l.layPlane(x, i, j)
				l.multiply()
				l.take(dw, i, j)
			}
		}
	}
}

func (l *depthLayer) layOutput(dy []float32) {
	clear(l.output)
	for r := range l.out[0] {
		copy(l.output[(l.down+r)*l.width:], part(dy, r, l.out[1]))
	}
}

// layPlane takes the elements that lie i rows and j columns behind those of the first place of the kernel.
func (l *depthLayer) layPlane(x []float32, i, j int) {
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

// multiply sums for all distances.
func (l *depthLayer) multiply() {
	for k := 0; k < l.length(); k += depthAtOnce {
		n := min(depthAtOnce, l.length()-k)
		left := kernel.GemmA{Data: l.output[k:], Strip: kernel.GemmRows() * l.width, Row: l.width, K: 1}
		right := kernel.GemmB{Data: l.plane[k:], Panel: panel, K: 1}
		kernel.GemmFloat(l.sums, l.across+1, left, right, l.down+1, l.across+1, n, k > 0)
	}
}

// take adds the sums for the places of the kernel in this plane.
func (l *depthLayer) take(dw []float32, i, j int) {
	for t := range dw {
		y, x := t/l.kernel[1]*l.dilation[0]-i, t%l.kernel[1]*l.dilation[1]-j
		if y >= 0 && x >= 0 && y%l.stride[0] == 0 && x%l.stride[1] == 0 {
			dw[t] += l.sums[(l.down-y/l.stride[0])*(l.across+1)+x/l.stride[1]]
		}
	}
}
