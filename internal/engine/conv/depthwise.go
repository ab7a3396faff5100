package conv

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A Depthwise convolution has one input channel per group: a matrix product would have little to share, so each row of
// the output is summed from rows of the input.
//
// A band of the image is packed first, with padding, so that rows need no boundary checks; for strides above 1, the
// columns of each kernel tap are made contiguous.
type Depthwise struct {
	*Geometry
	rows   int     // output rows of a band
	length int     // computed elements of a row: at least a vector
	width  int     // of a row of the band, for each phase of the stride
	at     []int64 // offset of each kernel tap in the band
	phases []tap   // columns of a row of the band that are inside the input
}

const (
	bandSize    = 1 << 14 // elements that stay in the cache
	leastLength = 8
)

// DepthwiseOf is nil if the convolution is not depthwise, or has too many axes.
func DepthwiseOf(g *Geometry) *Depthwise {
	const few = 8 // outputs per channel from which a matrix product is faster
	if g.InC != 1 || g.OutC >= few || len(g.in) > 2 {
		return nil
	}
	d := &Depthwise{Geometry: g}
	if len(g.in) == 1 {
		d.Geometry = &Geometry{g.asImage(), g.Batch, g.Groups, g.InC, g.OutC}
	}
	// Columns that are a stride apart are one phase and adjacent in the band, so that a tap of any stride is read as
	// contiguous vectors.
	step, reach := d.stride[1], d.kernel[1]-1
	d.length = max(d.out[1], leastLength)
	d.width = ceilDiv(d.length+reach*d.dilation[1]/step, panel) * panel // as rows are packed
	line := step * d.width
	d.rows = min(max((bandSize/line-d.span(0))/d.stride[0]+1, 1), max(d.out[0], 1))
	for phase := range step {
		d.phases = append(d.phases, phaseOf(phase-d.begin[1], step, d.in[1], d.width))
	}
	for i := range d.kernel[0] {
		for j := range d.kernel[1] {
			column := j * d.dilation[1]
			// Column c of the padded input is element c/step of phase c%step.
			d.at = append(d.at, int64(i*d.dilation[0]*line+column%step*d.width+column/step))
		}
	}
	return d
}

// asImage turns a window over one axis into one over an image of one row.
func (w *window) asImage() *window {
	front := func(v int, list []int) []int { return slices.Insert(slices.Clone(list), 0, v) }
	return &window{
		in: front(1, w.in), out: front(1, w.out),
		kernel: front(1, w.kernel), stride: front(1, w.stride), dilation: front(1, w.dilation),
		begin: front(0, w.begin), end: front(0, w.end),
	}
}

// lines is the number of rows of a band.
func (d *Depthwise) lines() int { return (d.rows-1)*d.stride[0] + d.span(0) }

// band is its number of elements.
func (d *Depthwise) band() int { return d.lines() * d.stride[1] * d.width }

// Scratch is the number of elements of Channel's scratch memory: the band, and rows of the output.
func (d *Depthwise) Scratch() int { return d.band() + d.rows*d.length }

func (d *Depthwise) work(workers int, h Halves) int64 {
	size := d.slot(h)
	if c := d.channels(); c != nil {
		size = max(size, c.slot())
	}
	return max(int64(workers)*size, d.lastWork(workers))
}

// slot is the size of a worker's scratch memory for rows.
func (d *Depthwise) slot(h Halves) int64 { return aligned(4 * int64(d.Scratch()+d.rowsOf(h.Y))) }

// rowsOf is the number of elements of a buffer for the rows of a band of a Float16 output.
func (d *Depthwise) rowsOf(isHalf bool) int {
	if isHalf {
		return d.rows * d.out[1]
	}
	return 0
}

// Channel writes to y a channel of the output: x, a channel of the input, convolved with weights w, plus first.
func (d *Depthwise) Channel(y, x, w []float32, first float32, scratch []float32) {
	band, spare := scratch[:d.band()], scratch[d.band():]
	for o := 0; o < d.out[0]; o += d.rows {
		d.fill(band, Images[float32]{Values: x}, o)
		d.sum(d.rowsFrom(y, o), spare, band, w, first, false)
	}
}

// rowsFrom are the rows of a channel of the output that the band of row o computes.
func (d *Depthwise) rowsFrom(y []float32, o int) []float32 {
	return y[o*d.out[1] : min(o+d.rows, d.out[0])*d.out[1]]
}

func (d *Depthwise) run(p *op.Pool, work []byte, j job) {
	if j.lastX {
		d.runLast(p, work, j)
		return
	}
	if c := d.channels(); c != nil && !j.add && !j.x.isHalf() && !j.y.isHalf() {
		c.run(p, work, j)
		return
	}
	bands := ceilDiv(d.out[0], d.rows)
	size := int(d.slot(Halves{j.x.isHalf(), j.y.isHalf()}))
	p.Slots(d.Products()*bands, func(task, slot int) {
		buf := scratch[float32](work[slot*size:][:size])
		all := buf.take(d.Scratch() + d.rowsOf(j.y.isHalf()))
		band, spare, rows := all[:d.band()], all[d.band():d.Scratch()], all[d.Scratch():]
		i, o := task/bands, task%bands*d.rows
		d.fill(band, j.x.from(i*d.inLen()), o)
		for m := range d.OutC {
			channel := i%d.Groups*d.OutC + m
			first := float32(0)
			if j.bias != nil {
				first = j.bias[channel]
			}
			at := (i*d.OutC+m)*d.OutArea() + o*d.out[1]
			to := target(j.y, at, (min(o+d.rows, d.out[0])-o)*d.out[1], rows)
			d.sum(to, spare, band, part(j.w, channel, d.kernelSize()), first, j.add)
			if j.activate != nil {
				j.activate(to)
			}
			put(j.y, at, to)
		}
	})
}

// phaseOf is the range of those of n columns, from from on and step apart, that are inside a row.
func phaseOf(from, step, wide, n int) tap {
	t := tap{}
	if from < 0 {
		t.lo = min(ceilDiv(-from, step), n)
	}
	if last := wide - 1 - from; last >= 0 {
		t.hi = min(last/step+1, n)
	}
	t.hi = max(t.hi, t.lo)
	t.from = from + t.lo*step
	return t
}

// fill packs the input rows for the output rows from o on, a panel of columns at a time.
func (d *Depthwise) fill(band []float32, x Images[float32], o int) {
	step, wide, lines := d.stride[1], d.in[1], d.lines()
	long, first := step*d.width, o*d.stride[0]-d.begin[0]
	from := min(max(-first, 0), lines) // rows from to end-1 are in the input
	end := max(min(lines, d.in[0]-first), from)
	// Padding is written for each band, as the memory had another one before.
	clear(band[:from*long])
	clear(band[end*long:])
	if from == end {
		return
	}
	for i, t := range d.phases {
		for at := 0; at < d.width; at += panel {
			lo, hi := max(t.lo, at), min(t.hi, at+panel)
			n, source := max(hi-lo, 0), 0
			if n > 0 {
				source = (first+from)*wide + t.from + (lo-t.lo)*step
			}
			to, lane := band[from*long+i*d.width+at:], min(lo-at, panel-n)
			if x.isHalf() {
				kernel.PackHalves(to, x.Halves[source:], end-from, long, wide, lane, n, step, false)
			} else {
				kernel.PackLanes(to, x.Values[source:], end-from, long, wide, lane, n, step, false)
			}
		}
	}
}

// copy copies the columns of a row, and zeros for the few outside.
func (t tap) copy(to, row []float32, step int) {
	for i := range to[:t.lo] {
		to[i] = 0
	}
	switch {
	case t.lo == t.hi:
	case step == 1:
		copy(to[t.lo:t.hi], row[t.from:])
	default:
		stridedCopyFloat(to[t.lo:t.hi], row[t.from:], step)
	}
	for i := t.hi; i < len(to); i++ {
		to[i] = 0
	}
}

// sum writes rows of the output, through spare if they are too short, or are accumulated.
func (d *Depthwise) sum(y, spare, band, w []float32, first float32, add bool) {
	wide := d.out[1]
	rows, line := len(y)/wide, d.stride[0]*d.stride[1]*d.width
	if !add && wide == d.length {
		kernel.WeightRows(y, wide, band, line, rows, wide, d.at, w, first)
		return
	}
	// The kernel computes at least a vector of each row, which would write over the next row of a narrow output.
	kernel.WeightRows(spare, d.length, band, line, rows, d.length, d.at, w, first)
	for r := range rows {
		row, sum := part(y, r, wide), part(spare, r, d.length)[:wide]
		if add {
			kernel.Add(row, row, sum)
		} else {
			copy(row, sum)
		}
	}
}
