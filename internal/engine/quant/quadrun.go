package quant

import (
	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A quadRun is one call of IntegerConv with quadWeights.
type quadRun struct {
	*conv.Geometry
	*quadWeights
	x, y   []byte
	signed bool // X is int8
	work   []byte
}

func newQuadRun(g *conv.Geometry, w *quadWeights, c *op.Call) *quadRun {
	return &quadRun{Geometry: g, quadWeights: w, x: c.In[icX].Data, y: c.Out[0].Data,
		signed: c.In[icX].DType == ir.Int8, work: c.Work}
}

// quadWork is the scratch memory of a quadRun: an input of each worker.
func quadWork(n *op.Node, g *conv.Geometry, workers int) int64 {
	if kernel.GemmIntWidth() != 1 || !n.IsConst(icW) {
		return 0
	}
	return int64(workers) * quadSlot(g)
}

func quadSlot(g *conv.Geometry) int64 {
	if g.Pointwise() && g.OutC > 1 {
		return aligned(int64(newQuadTiles(g).rows*g.Channels() + kernel.GemmQuad))
	}
	return aligned(int64(conv.NewPixelBand(g).Bytes() + kernel.QuadBlock))
}

func (r *quadRun) run(pool *op.Pool) {
	switch {
	case r.window != nil:
		r.slide(pool)
	case r.Pointwise() && r.OutC > 1:
		r.multiply(pool)
	default:
		r.convolve(pool)
	}
}

// slot is the scratch memory of a worker.
func (r *quadRun) slot(i int) []byte {
	size := quadSlot(r.Geometry)
	return r.work[int64(i)*size:][:size]
}

// multiply computes a pointwise convolution. Pixels that are not whole quads of uint8 are copied.
func (r *quadRun) multiply(pool *op.Pool) {
	tiles, channels, in := newQuadTiles(r.Geometry), r.Groups*r.OutC, r.Channels()
	inPlace := !r.signed && r.InC%kernel.GemmQuad == 0
	runs := conv.NewPixelBand(r.Geometry).Runs()
	pool.Slots(r.Products()*tiles.n(), func(task, slot int) {
		product := task / tiles.n()
		image, group := product/r.Groups, product%r.Groups
		from, n, lo, hi := tiles.tile(task % tiles.n())
		x := part(r.x, image, r.InArea()*in)[from*in:][:n*in]
		if !inPlace {
			copied := r.slot(slot)
			if r.signed {
				kernel.FlipSigns(copied[:n*in], x)
			} else {
				copy(copied, x)
			}
			x = copied
		}
		c := *r.convs[group]
		c.Runs = runs
		c.Slide(part(r.y, image, r.OutArea()*channels)[from*channels+group*r.OutC:], channels, x[group*r.InC:], n, in,
			lo, hi)
	})
}

// convolve computes bands of rows. Two panels of weights are in the cache for all rows of a band.
func (r *quadRun) convolve(pool *op.Pool) {
	b, channels := conv.NewPixelBand(r.Geometry), r.Groups*r.OutC
	tiles, runs := newQuadTiles(r.Geometry), b.Runs()
	tiles.rows, tiles.down = b.Rows, b.Bands()
	pool.Slots(r.Products()*tiles.n(), func(task, slot int) {
		product := task / tiles.n()
		image, group := product/r.Groups, product%r.Groups
		first, _, lo, hi := tiles.tile(task % tiles.n())
		band := r.slot(slot)
		from, to := r.fill(b, band, image, first/b.Rows)
		y := part(r.y, image, r.OutArea()*channels)
		c := *r.convs[group]
		c.Runs = runs
		for ; lo < hi; lo += 2 * kernel.GemmPanel {
			for row := range to - from {
				x, positions, step := b.Row(band, row)
				c.Slide(y[(from+row)*positions*channels+group*r.OutC:], channels, x[group*r.InC:], positions, step,
					lo, min(hi, lo+2*kernel.GemmPanel))
			}
		}
	})
}

// slide computes a depthwise convolution, by bands.
func (r *quadRun) slide(pool *op.Pool) {
	b, w := conv.NewPixelBand(r.Geometry), *r.window
	w.At = b.Taps(kernel.GemmQuad)
	pool.Slots(b.Batch*b.Bands(), func(task, slot int) {
		band, y := r.slot(slot), part(r.y, task/b.Bands(), b.OutArea()*b.Groups)
		from, to := r.fill(b, band, task/b.Bands(), task%b.Bands())
		for row := range to - from {
			x, positions, step := b.Row(band, row)
			w.Slide(part(y, from+row, positions*b.Groups), x, positions, step)
		}
	})
}

// fill copies a band as uint8.
func (r *quadRun) fill(b *conv.PixelBand, band []byte, image, i int) (from, to int) {
	from, to = b.Fill(band, part(r.x, image, b.InArea()*b.Channels()), i, byte(r.xZero))
	if r.signed {
		// x ^ 0x80 is x + 128 as uint8. Padding, which has the zero point of int8, is flipped with it.
		kernel.FlipSigns(band, band)
	}
	return from, to
}

// quadTiles divides the positions and channels of a product into tiles. If the weights are larger than the images,
// workers read different weights, else different pixels.
type quadTiles struct {
	positions, channels int
	rows, cols          int // of a tile
	down, across        int
	byChannels          bool
}

const (
	// of the pixels of a tile and of the result, which is written 32 channels at a time: most of the L1 cache
	tileBytes    = 1 << 15
	leastTiles   = 8
	quadRows     = 8 // of a strip of the kernel
	leastProduct = 1 << 17
)

func newQuadTiles(g *conv.Geometry) *quadTiles {
	t := &quadTiles{positions: g.OutArea(), channels: g.OutC}
	t.rows, t.cols = max(tileBytes/(g.Channels()+g.Groups*g.OutC), quadRows), t.channels
	if g.Depth()*g.OutC > g.InArea()*g.InC+g.OutArea()*g.OutC {
		t.byChannels = true
		t.cols = roundUp((t.channels+leastTiles-1)/leastTiles, 2*kernel.GemmPanel)
		t.rows = min(t.rows, (t.positions+1)/2)
	} else {
		least := leastProduct / max(g.Depth()*g.OutC, 1)
		t.rows = min(t.rows, max((t.positions+leastTiles-1)/leastTiles, least))
	}
	t.rows = roundUp(t.rows, quadRows)
	t.down, t.across = (t.positions+t.rows-1)/t.rows, (t.channels+t.cols-1)/t.cols
	return t
}

func (t *quadTiles) n() int { return t.down * t.across }

// tile is the first position of tile i, their number, and its channels.
func (t *quadTiles) tile(i int) (from, n, lo, hi int) {
	down, across := i/t.across, i%t.across
	if t.byChannels {
		down, across = i%t.down, i/t.down
	}
	from, lo = down*t.rows, across*t.cols
	return from, min(t.rows, t.positions-from), lo, min(lo+t.cols, t.channels)
}
