package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// denseWindows are the windows of a convolution of few input channels, such as the first one of a model, whose patches
// take as long to pack as to multiply. A band of the image is copied with padding instead, and windows are multiplied
// where they are, with the packed weights: adjacent outputs are rows a stride apart, and each tap has an offset.
// Results are bit-identical to those of multiply.
type denseWindows struct {
	*Geometry
	rows int     // output rows of a band
	wide int     // columns of a row of the band
	at   []int64 // offsets of the elements of a patch in the band
}

// denseWindowsOf is nil if sums are deeper than those of one block, if rows of the output are shorter than a strip, or
// if windows leave gaps, which need not be copied.
func denseWindowsOf(g *Geometry, workers int) *denseWindows {
	// Sums of at most 256 products: packing patches took as long as multiplying them. 3 to 32 channels, 3×3, stride 2,
	// 224×224: 642 → 464 µs; 12 to 16, 3×3, 208×208: 3501 → 2824.
	if len(g.in) != 2 || g.Groups != 1 || g.Depth() > gemm.Depth || g.Pointwise() || g.out[1] < kernel.GemmAtRows {
		return nil
	}
	// Such a band has elements that no window reads: 1×1 kernels of stride 2 took 1.4 times as long.
	if g.kernel[0] < g.stride[0] || g.kernel[1] < g.stride[1] {
		return nil
	}
	d := &denseWindows{Geometry: g}
	d.wide = (g.out[1]-1)*g.stride[1] + g.span(1)
	d.rows = max((bandSize/(g.InC*d.wide)-g.span(0))/g.stride[0]+1, 1)
	// Small images have fewer rows in a band than fit the cache, so that all workers have bands.
	d.rows = min(d.rows, max(ceilDiv(g.Batch*g.out[0], tilesPerWorker*workers), 1), g.out[0])
	d.at = d.taps()
	return d
}

// lines is the number of rows of a band.
func (d *denseWindows) lines() int { return (d.rows-1)*d.stride[0] + d.span(0) }

// parts are the numbers of elements of a band and of a row of the output with channels last.
func (d *denseWindows) parts() [2]int {
	return [2]int{d.InC * d.lines() * d.wide, d.out[1] * d.OutC}
}

// slot is the size of a worker's scratch memory.
func (d *denseWindows) slot() (size int64) {
	for _, n := range d.parts() {
		size += aligned(4 * int64(n))
	}
	return size
}

func (d *denseWindows) run(p *op.Pool, work []byte, j job, weights packedWeights) {
	bands, size := ceilDiv(d.out[0], d.rows), int(d.slot())
	p.Slots(d.Batch*bands, func(task, slot int) {
		buf := scratch[float32](work[slot*size:][:size])
		band, row := buf.take(d.parts()[0]), buf.take(d.parts()[1])
		image, first := task/bands, task%bands*d.rows
		d.fill(band, part(j.x.Values, image, d.InC*d.InArea()), first)
		y := part(j.y.Values, image, d.OutC*d.OutArea())
		limits, activate := j.bounded()
		finish := kernel.GemmFinish{Bias: j.bias, Lo: limits.lo, Hi: limits.hi}
		for o := first; o < min(first+d.rows, d.out[0]); o++ {
			if j.lastY {
				row = part(y, o, len(row))
			}
			kernel.GemmAt(row, d.OutC, band[(o-first)*d.stride[0]*d.wide:], d.stride[1], d.at, weights, d.out[1],
				d.OutC, finish)
			if activate != nil {
				activate(row)
			}
			if !j.lastY {
				kernel.TransposeInto(y[o*d.out[1]:], d.OutArea(), row, d.OutC, d.out[1], d.OutC)
			}
		}
	})
}

func (d *denseWindows) taps() []int64 {
	at := make([]int64, 0, d.Depth())
	for c := range d.InC {
		for i := range d.kernel[0] {
			for k := range d.kernel[1] {
				at = append(at, int64((c*d.lines()+i*d.dilation[0])*d.wide+k*d.dilation[1]))
			}
		}
	}
	return at
}

// fill copies the rows of all channels for the output rows from o on.
func (d *denseWindows) fill(band, x []float32, o int) {
	columns := phaseOf(-d.begin[1], 1, d.in[1], d.wide)
	for c := range d.InC {
		for l := range d.lines() {
			row, at := part(band, c*d.lines()+l, d.wide), o*d.stride[0]-d.begin[0]+l
			if at < 0 || at >= d.in[0] {
				clear(row)
			} else {
				columns.copy(row, part(x, c*d.in[0]+at, d.in[1]), 1)
			}
		}
	}
}
