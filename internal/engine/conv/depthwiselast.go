package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// layouts are those that a convolution supports: any for packed weights of 1×1 kernels and Winograd's algorithm, any of
// the output for other packed weights, and equal ones if it is depthwise, with whole vectors of channels. Results are
// bit-identical to those of images with channels first.
func layouts(n *op.Node, in []*ir.Array) op.Layouts {
	w := op.Opt(in, 1)
	if w == nil || w.DType != ir.Float || len(w.Shape) != 4 {
		return op.ChannelsFirst
	}
	_, isPacked := n.State.(packedWeights)
	_, transformed := n.State.(winogradWeights)
	_, sparse := n.State.(sparseWeights)
	switch {
	// Layers of MobileNetV2 with channels last, time divided by that with channels first (one thread, AMD EPYC):
	// depthwise 960 of 3×3 0.40, 384 of 14×14 0.67, 144 of 56×56 0.99; 1×1, 144 to 32 of 12×12 0.62, 384 to 64 of 14×14
	// 0.80, 32 to 16 of 112×112 1.11.
	case sparse && groupsOf(n) == 1:
		return op.AnyLayouts
	case transformed && groupsOf(n) == 1 && w.Shape[0]%panel == 0 && w.Shape[1]%panel == 0:
		return op.AnyLayouts
	case isPacked && isPointwise(n, w):
		return op.AnyLayouts
	case isPacked:
		return op.LastOutput
	// No fourth input: windows have no initial sums but the bias, and runLast no residual.
	case n.State == nil && n.NumIn <= 3 && w.Shape[1] == 1 && w.Shape[0] == groupsOf(n) &&
		w.Shape[0]%kernel.DepthwiseGroup == 0:
		return op.EqualLayouts
	}
	return op.ChannelsFirst
}

// lastWork is the size of the scratch memory of runLast.
func (d *Depthwise) lastWork(workers int) int64 {
	return int64(workers)*d.lastSlot() + aligned(4*int64(d.Groups))
}

// lastSlot is the size of a worker's weights.
func (d *Depthwise) lastSlot() int64 { return aligned(4 * int64(d.Groups*d.kernelSize())) }

// runLast computes images with channels last, row by row, or channels of all rows. Windows slide over the input where
// it is: columns of the output whose windows exceed the image are computed one by one, from the taps inside it. Each
// worker transposes the weights that it needs, as those of another worker would be in the cache of another processor.
func (d *Depthwise) runLast(p *op.Pool, work []byte, j job) {
	channels, rows, size := d.Groups, d.Batch*d.out[0], int(d.lastSlot())
	first := j.bias
	// The kernel begins sums from the bias; without one from zeros after the memory of all workers.
	if first == nil {
		rest := scratch[float32](work[p.Workers()*size:])
		first = rest.take(channels)
		clear(first)
	}
	products := d.out[1] * channels * d.kernelSize() // of a row
	some := func(slot, from, to int) channelRange {
		buf := scratch[float32](work[slot*size:])
		return channelRange{Depthwise: d, job: j, w: buf.take(channels * d.kernelSize()), first: first, from: from,
			to: to}
	}
	// By the same rule as the 1×1 layers around it, so that a worker reads what it wrote.
	if dividesChannels(depthwiseExpansion*d.inLen(), channels) {
		groups := channels / kernel.DepthwiseGroup
		tasks := min(max(rows*products/leastWindowWork, 1), groups)
		p.Slots(tasks, func(i, slot int) {
			from, to := bounded(i, tasks, kernel.DepthwiseGroup, channels)
			c := some(slot, from, to)
			c.transpose()
			c.run(0, rows)
		})
		return
	}
	tasks, ready := min(max(rows*products/leastWindowWork, 1), rows), make([]bool, p.Workers())
	p.Slots(tasks, func(i, slot int) {
		c := some(slot, 0, channels)
		// Once for a worker, not for a task: a worker computes several ranges of rows with the same weights.
		if !ready[slot] {
			c.transpose()
			ready[slot] = true
		}
		c.run(i*rows/tasks, (i+1)*rows/tasks)
	})
}

const (
	leastWindowWork = 1 << 15 // products, a microsecond
	// the usual ratio of the channels of a depthwise convolution to those of the 1×1 layers around it
	depthwiseExpansion = 4
)

// A channelRange is channels from to to-1 of a depthwise convolution of images with channels last.
type channelRange struct {
	*Depthwise
	job
	w, first []float32 // w is transposed
	from, to int
}

// transpose makes the weights of the channels adjacent.
func (c channelRange) transpose() {
	size := c.kernelSize()
	kernel.TransposeInto(c.w[c.from:], c.Groups, c.job.w[c.from*size:], size, c.to-c.from, size)
}

// run computes rows lo to hi-1 of all images.
func (c channelRange) run(lo, hi int) {
	rows, wide, channels := c.out[0], c.out[1]*c.Groups, c.to-c.from
	limits, activate := c.bounded()
	// On the stack, MobileNetV2 96×96 takes 0.89 instead of 0.91 ms (one worker).
	var taps [5 * 5]kernel.Tap // enough for usual kernels, without an allocation for each task
	window := kernel.FloatWindow{Taps: taps[:0], W: c.w[c.from:], First: c.first[c.from:c.to], Lo: limits.lo,
		Hi: limits.hi}
	for r := lo; r < hi; r++ {
		row := part(c.y.Values, r, wide)
		c.slideRow(window, row[c.from:], part(c.x.Values, r/rows, c.inLen()*c.Groups)[c.from:], r%rows)
		if activate != nil {
			eachRow(row[c.from:], c.Groups, channels, c.out[1], activate)
		}
	}
}

// eachRow calls f for rows of n elements that are stride apart, or once if they are contiguous.
func eachRow(x []float32, stride, n, rows int, f func(row []float32)) {
	if stride == n {
		f(x[:rows*n])
		return
	}
	for i := range rows {
		f(x[i*stride:][:n])
	}
}

// slideRow computes row o of an image, with the window's memory for taps. If the window were a pointer, they would be
// on the heap.
func (d *Depthwise) slideRow(window kernel.FloatWindow, y, x []float32, o int) {
	channels, wide, n := d.Groups, d.kernel[1], 0
	for column := 0; column < d.out[1]; column += n {
		lo, hi := d.inside(1, column)
		n = 1
		// All windows that are inside the image, with one list of taps.
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
