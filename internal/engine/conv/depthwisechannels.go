package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// channelsWidth is the number of adjacent channels of an image that a depthwise convolution computes at once.
const channelsWidth = kernel.DepthwiseGroup

// depthwiseChannels is a depthwise convolution of small images: their rows are shorter than a few vectors, so vectors
// are channels instead. A band of an image is packed with padding and 16 adjacent channels, and sums are transposed
// back. Results are bit-identical to those of Depthwise.
type depthwiseChannels struct {
	*Depthwise
	rows int // output rows of a band
	line int // columns of a row of the band
	taps []kernel.Tap
}

// channels is nil if rows are summed faster: those of large images, and if there are several outputs per channel.
func (d *Depthwise) channels() *depthwiseChannels {
	// Time divided by that of rows, layers of MobileNetV2 by their output: 3×3 0.21, 7×7 0.39, 14×14 0.67, 24×24 1.02,
	// 56×56 1.40.
	if d.OutC != 1 || d.out[1] > maxChannelsRow {
		return nil
	}
	c := &depthwiseChannels{Depthwise: d, line: (d.out[1]-1)*d.stride[1] + d.span(1)}
	c.rows = min(max((bandSize/(c.line*channelsWidth)-d.span(0))/d.stride[0]+1, 1), max(d.out[0], 1))
	for i := range d.kernel[0] {
		for j := range d.kernel[1] {
			c.taps = append(c.taps, kernel.Tap{X: (i*d.dilation[0]*c.line + j*d.dilation[1]) * channelsWidth,
				W: len(c.taps) * channelsWidth})
		}
	}
	return c
}

// maxChannelsRow is the length of rows of the output up to which depthwiseChannels is faster (measured).
const maxChannelsRow = 16

// lines is the number of rows of a band.
func (c *depthwiseChannels) lines() int { return (c.rows-1)*c.stride[0] + c.span(0) }

// slot is the size of a worker's scratch memory.
func (c *depthwiseChannels) slot() int64 {
	size := int64(0)
	for _, n := range c.parts() {
		size += aligned(4 * int64(n))
	}
	return size
}

// parts are the numbers of elements of a band, its input or output before they are transposed, weights and first sums.
func (c *depthwiseChannels) parts() [4]int {
	return [4]int{
		c.lines() * c.line * channelsWidth,
		max(min(c.lines(), c.in[0])*c.in[1], c.rows*c.out[1]) * channelsWidth,
		c.kernelSize() * channelsWidth,
		channelsWidth,
	}
}

func (c *depthwiseChannels) run(p *op.Pool, work []byte, j job) {
	bands, groups, size := ceilDiv(c.out[0], c.rows), ceilDiv(c.Groups, channelsWidth), int(c.slot())
	p.Slots(c.Batch*groups*bands, func(task, slot int) {
		var parts [4][]float32
		buf := scratch[float32](work[slot*size:][:size])
		for i, n := range c.parts() {
			parts[i] = buf.take(n)
		}
		band, spare, w, first := parts[0], parts[1], parts[2], parts[3]
		channel := task / bands % groups * channelsWidth
		n := min(channelsWidth, c.Groups-channel)
		clear(first)
		if j.bias != nil {
			copy(first, j.bias[channel:][:n])
		}
		if n < channelsWidth {
			clear(w)
			clear(spare)
		}
		kernel.TransposeInto(w, channelsWidth, j.w[channel*c.kernelSize():], c.kernelSize(), n, c.kernelSize())
		plane, o := task/bands/groups*c.Groups+channel, task%bands*c.rows
		c.fill(band, spare, j.x.Values[plane*c.inLen():], n, o)
		rows := min(c.rows, c.out[0]-o)
		// The transposed input is in the band now, so sums have its memory.
		sums := spare[:rows*c.out[1]*channelsWidth]
		limits, activate := j.bounded()
		window := &kernel.FloatWindow{Taps: c.taps, W: w, First: first, Lo: limits.lo, Hi: limits.hi}
		for r := range rows {
			row := part(sums, r, c.out[1]*channelsWidth)
			window.Slide(row, channelsWidth, band[r*c.stride[0]*c.line*channelsWidth:], c.stride[1]*channelsWidth,
				c.out[1])
		}
		if activate != nil {
			activate(sums)
		}
		kernel.TransposeInto(j.y.Values[plane*c.OutArea()+o*c.out[1]:], c.OutArea(), sums, channelsWidth,
			rows*c.out[1], n)
	})
}

// fill packs the rows of n channels for the output rows from o on.
func (c *depthwiseChannels) fill(band, spare, x []float32, n, o int) {
	first, wide := o*c.stride[0]-c.begin[0], c.in[1]
	from, end := min(max(first, 0), c.in[0]), max(min(first+c.lines(), c.in[0]), 0)
	if from < end {
		kernel.TransposeInto(spare, channelsWidth, x[from*wide:], c.inLen(), n, (end-from)*wide)
	}
	columns := phaseOf(-c.begin[1], 1, wide, c.line)
	for r := range c.lines() {
		row := part(band, r, c.line*channelsWidth)
		if at := first + r; at < from || at >= end {
			clear(row)
			continue
		}
		lo, hi := columns.lo*channelsWidth, columns.hi*channelsWidth
		clear(row[:lo])
		copy(row[lo:hi], spare[((first+r-from)*wide+columns.from)*channelsWidth:])
		clear(row[hi:])
	}
}
