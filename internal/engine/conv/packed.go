package conv

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// packedWeights is the result of Prepare for most W of one group: panels of 16 output channels, as the right operand.
// For small images the left one is the patches, a row per pixel, so that few pixels fill the tiles of the kernels, and
// weights are read once, in their order. The product is transposed into the output. Results are bit-identical to those
// of multiply.
type packedWeights []float32

const maxPackedArea = 15 * 15 // pixels of the output up to which images are small (measured)

// packedFits reports whether weights of this shape are packed when the model is loaded, unless they are sparse. Kernels
// that are not square are left out, such as those of one axis: their images are rarely small, and unpacking takes
// scratch memory of the size of the weights.
func packedFits(n *op.Node, w *ir.Array) bool {
	return w.DType == ir.Float && len(w.Shape) == 4 && w.Shape[2] == w.Shape[3] && n.Int("group", 1) == 1 &&
		!winogradFits(n, w) &&
		w.Shape[0] >= panel
}

// isPointwise reports whether Geometry.Pointwise will be true for weights of two axes.
func isPointwise(n *op.Node, w *ir.Array) bool {
	all := func(values []int64, want int64) bool {
		return !slices.ContainsFunc(values, func(v int64) bool { return v != want })
	}
	return w.Shape[2] == 1 && w.Shape[3] == 1 && all(n.Ints("strides"), 1) && all(n.Ints("pads"), 0)
}

// preparePacked packs constant weights.
func preparePacked(w *ir.Array, p *op.Pool) *op.Prepared {
	outC, depth := int(w.Shape[0]), int(op.Product(w.Shape[1:]))
	bytes := 4 * int64(ceilDiv(outC, panel)*panel*depth)
	packed, values := kernel.Words[float32](ir.AlignedBytes(bytes)), ir.View[float32](w)
	p.For(ceilDiv(outC, panel), func(i int) {
		n := min(panel, outC-i*panel)
		kernel.PackPanels(part(packed, i, panel*depth), panel*depth, values[i*panel*depth:], 1, depth, depth, n)
	})
	return &op.Prepared{State: packedWeights(packed), Bytes: bytes, Drops: []int{1}}
}

// A packedProduct is that of all images. Tiles have pixels of several of them if they are tiny, so that weights are
// read less often.
type packedProduct struct {
	*Geometry
	joined           int  // images whose pixels are joined: all, or each alone
	down, across     int  // tiles over the pixels of joined images, and over the channels
	byChannels       bool // tiles of the same channels follow each other, so that a worker reads few of the weights
	pixels, channels int  // of the largest tile
	depth            int  // summed at once
}

// packedRows is the number of pixels whose patches are packed at once: whole strips of the kernels of all CPUs.
const packedRows = 12

// Limits of a tile, for which its sums, the patches and four panels of weights stay in the L2 cache.
const (
	maxTilePixels   = 96
	maxTileChannels = 256
	minTileWork     = 1 << 17 // products, some microseconds
	tilesPerWorker  = 4

	conflictingArea = 256 // channels at a multiple of so many pixels are in few sets of the L1 cache
)

// packedOf divides the product into tiles. Those of a worker are contiguous pixels, as in other steps, or channels if
// the weights are larger than the images.
func packedOf(g *Geometry, workers int) *packedProduct {
	p := &packedProduct{Geometry: g, joined: 1, depth: min(g.Depth(), gemm.Depth)}
	// Tiles with pixels of several images read the weights less often: 960 to 240 channels of 1×1 pixels take 0.46 of
	// the time with 8 images, 512 to 512 with 3×3 kernels and 3×3 pixels 0.85. Joining images of 6×6 to 14×14 pixels
	// gained nothing (0.97 to 1.03).
	if g.OutArea() <= packedRows {
		p.joined = max(g.Batch, 1)
	}
	all := p.joined * g.OutArea()
	// Weights of 7×7 images are larger than the images, and each worker reads its part of them only.
	p.byChannels = workers > 1 && g.Pointwise() && dividesChannels(all, min(g.InC, g.OutC))
	p.down, p.across = max(ceilDiv(all, maxTilePixels), 1), ceilDiv(g.OutC, maxTileChannels)
	strips, panels := max(ceilDiv(all, packedRows), 1), ceilDiv(g.OutC, panel)
	// Each split doubles the tiles, until all workers have some or tiles are too short for the cost of a task. Pixels
	// are divided before channels: tiles of all channels read the patches once.
	split := func(n *int, limit int) {
		for p.tiles() < tilesPerWorker*workers && *n < limit && all*g.OutC*g.Depth() >= 2*minTileWork*p.down*p.across {
			*n = min(2**n, limit)
		}
	}
	if workers > 1 {
		if !p.byChannels && g.Pointwise() {
			split(&p.down, strips)
		}
		split(&p.across, panels)
	}
	// Balanced instead of equal to a maximum, as tiles of 72, 72 and 52 pixels leave one of two workers idle: 384 to 64
	// channels of 14×14 52 → 38 µs. More pixels for few channels, and at most 64 channels, changed nothing.
	p.pixels, p.channels = ceilDiv(strips, p.down)*packedRows, ceilDiv(panels, p.across)*panel
	return p
}

// dividesChannels reports whether workers divide the channels of a layer with weights for each pair of so many
// channels, instead of the pixels of its images: those of another worker are in the cache of another processor, but
// weights are read by all.
func dividesChannels(pixels, channels int) bool { return pixels < channels }

func (p *packedProduct) tiles() int { return p.Batch / p.joined * p.down * p.across }

// tile returns the pixels of all images and the channels of a tile.
func (p *packedProduct) tile(task int) (from, to, first, last int) {
	across, rest := task%p.across, task/p.across
	down, images := rest%p.down, rest/p.down
	if p.byChannels {
		rest, down = task/p.down, task%p.down
		across, images = rest%p.across, rest/p.across
	}
	all := p.joined * p.OutArea()
	from, to = bounded(down, p.down, packedRows, all)
	first, last = bounded(across, p.across, panel, p.OutC)
	return images*all + from, images*all + to, first, last
}

// bounded are the bounds of part i of n of a length, which are multiples of unit.
func bounded(i, n, unit, length int) (from, to int) {
	units := ceilDiv(length, unit)
	return i * units / n * unit, min((i+1)*units/n*unit, length)
}

// slots are the numbers of elements of a worker's scratch memory: strips, patches, those of a further image, sums, and
// sums of a Float16 output by channel.
func (p *packedProduct) slots(isHalf bool) [5]int {
	further, stored := 0, 0
	if p.joined > 1 {
		further = panel * p.depth
	}
	if isHalf {
		stored = p.pixels * p.channels
	}
	return [5]int{p.pixels * p.depth, panel * p.depth, further, p.pixels * p.channels, stored}
}

// eachImage calls f for the images that have pixels from to end-1 of all, with those of the image.
func (p *packedProduct) eachImage(from, end int, f func(image, lo, hi int)) {
	for from < end {
		image := from / p.OutArea()
		first := image * p.OutArea()
		next := min(end, first+p.OutArea())
		f(image, from-first, next-first)
		from = next
	}
}

func (p *packedProduct) slot(isHalf bool) (size int64) {
	for _, n := range p.slots(isHalf) {
		size += aligned(4 * int64(n))
	}
	return size
}

// unpack writes the weights as rows to w.
func (weights packedWeights) unpack(p *op.Pool, w []float32, depth int) {
	outC := len(w) / depth
	p.For(ceilDiv(outC, panel), func(i int) {
		rows := w[i*panel*depth : min((i+1)*panel, outC)*depth]
		kernel.TransposeInto(rows, depth, part(weights, i, panel*depth), panel, depth, len(rows)/depth)
	})
}

// isSmall reports whether patches are the left operand if weights are packed.
func (g *Geometry) isSmall() bool { return g.OutArea() <= maxPackedArea }

// packedWork is the size of the scratch memory for packed weights.
func (g *Geometry) packedWork(workers int, h Halves) int64 {
	// For all cases of algorithm, which chooses by the layout and the types of a run.
	size := g.TableSize() + int64(workers)*packedOf(g, workers).slot(h.Y)
	if !g.isSmall() {
		size = max(size, aligned(4*int64(g.OutC*g.Depth()))+g.computedWork(workers, h))
	}
	if d := denseWindowsOf(g, workers); d != nil {
		size = max(size, int64(workers)*d.slot())
	}
	return size
}

// algorithm multiplies the patches with the weights, of large images as rows.
func (weights packedWeights) algorithm(g *Geometry, workers int) algorithm {
	dense, small := denseWindowsOf(g, workers), packedOf(g, workers)
	return func(pool *op.Pool, work []byte, j job) {
		switch {
		case dense != nil && !j.add && !j.x.isHalf() && !j.y.isHalf():
			dense.run(pool, work, j, weights)
		// The transposition of the product costs more than it saves for large images: 256 to 64 channels of 56×56 1.15
		// of the time of unpacked weights, with weights that are unpacked in each run 0.95.
		case !g.isSmall() && !j.lastX && !j.lastY:
			buf := scratch[float32](work)
			j.w = buf.take(g.OutC * g.Depth())
			weights.unpack(pool, j.w, g.Depth())
			g.multiply(pool, buf, j)
		default:
			small.run(pool, work, j, weights)
		}
	}
}

func (p *packedProduct) run(pool *op.Pool, work []byte, j job, weights packedWeights) {
	table, rest := work[:p.TableSize()], work[p.TableSize():]
	images := p.images(j.x, table)
	size := int(p.slot(j.y.isHalf()))
	pool.Slots(p.tiles(), func(task, slot int) {
		t := packedTile{packedProduct: p, job: j, weights: weights, patches: images}
		t.from, t.to, t.first, t.last = p.tile(task)
		t.run(scratch[float32](rest[slot*size:][:size]))
	})
}

// images returns a function for the patches of an image. table is that of PatchesOf.
func (p *packedProduct) images(x Images[float32], table []byte) func(image int) gemm.Panels[float32] {
	size := p.InC * p.InArea()
	if p.Pointwise() {
		return func(image int) gemm.Panels[float32] { return pixelPanels(x.from(image*size), p.OutArea()) }
	}
	patches := PatchesOf(p.Geometry, table)
	return func(image int) gemm.Panels[float32] { return patches.Of(x.from(image * size)) }
}

// A packedTile is pixels from to to-1 of all images and channels first to last-1 of the output.
type packedTile struct {
	*packedProduct
	job
	weights     packedWeights
	patches     func(image int) gemm.Panels[float32]
	from, to    int
	first, last int
}

func (t *packedTile) run(buf scratch[float32]) {
	sizes := t.slots(t.y.isHalf())
	left, block, further, sums := buf.take(sizes[0]), buf.take(sizes[1]), buf.take(sizes[2]), buf.take(sizes[3])
	pixels, channels, area := t.to-t.from, t.last-t.first, t.OutArea()
	sums, stride := sums[:pixels*channels], channels
	if t.lastY {
		sums, stride = t.y.Values[t.from*t.OutC+t.first:t.to*t.OutC], t.OutC
	}
	// With channels last the sums are the output itself, which has the residual already.
	if t.add && !t.lastY {
		t.eachOutput(sums, func(at int, sums []float32) {
			kernel.TransposeInto(sums, channels, t.y.Values[at:], area, channels, len(sums)/channels)
		})
	}
	limits, activate := t.bounded()
	finish := kernel.GemmFinish{Lo: limits.lo, Hi: limits.hi}
	if t.bias != nil {
		finish.Bias = t.bias[t.first:t.last]
	}
	// Blocks of 256, each one chain of fused multiply-adds, added in order: as in all other products, so that results do
	// not depend on the form of the weights.
	for k := 0; k < t.Depth(); k += t.depth {
		t.multiply(sums, stride, left, block, further, k, min(k+t.depth, t.Depth()), finish)
	}
	if activate != nil {
		eachRow(sums, stride, channels, pixels, activate)
	}
	if t.lastY {
		return
	}
	if !t.y.isHalf() {
		t.eachOutput(sums, func(at int, sums []float32) {
			kernel.TransposeInto(t.y.Values[at:], area, sums, channels, len(sums)/channels, channels)
		})
		return
	}
	// Float16 is stored from rows of a channel, as put converts contiguous elements.
	rows := buf.take(sizes[4])
	t.eachOutput(sums, func(at int, sums []float32) {
		pixels := len(sums) / channels
		kernel.TransposeInto(rows[:len(sums)], pixels, sums, channels, pixels, channels)
		for i := range channels {
			put(t.y, at+i*area, part(rows, i, pixels))
		}
	})
}

// eachOutput calls f for the sums of each image, with the position of the first in the output.
func (t *packedTile) eachOutput(sums []float32, f func(at int, sums []float32)) {
	t.eachImage(t.from, t.to, func(image, lo, hi int) {
		n := (hi - lo) * (t.last - t.first)
		f((image*t.OutC+t.first)*t.OutArea()+lo, sums[:n])
		sums = sums[n:]
	})
}

// multiply adds the products k to end-1 to rows of sums, and finishes them after the last ones. Patches are packed into
// the strips of the kernel, but pixels with channels last, and those of large images, are multiplied where they are.
func (t *packedTile) multiply(sums []float32, stride int, left, block, further []float32, k, end int,
	finish kernel.GemmFinish) {
	depth, high := end-k, kernel.GemmRows()
	a := kernel.GemmA{Data: left, Strip: high * depth, Row: 1, K: high}
	switch area := t.OutArea(); {
	case t.lastX:
		a = kernel.GemmA{Data: t.x.Values[t.from*t.InC+k:], Strip: high * t.InC, Row: t.InC, K: 1}
	// Not of small images: packing 21 layers of 16 to 960 channels into panels took as long in the median, 0.84 to
	// 1.30.
	case t.Pointwise() && !t.isSmall() && area%conflictingArea != 0: // pixels of a channel are contiguous
		a = kernel.GemmA{Data: t.x.Values[(t.from/area*t.InC+k)*area+t.from%area:], Strip: high, Row: 1, K: area}
	default:
		t.pack(left, block[:panel*depth], further, k, end)
	}
	// Panels of weights hold all of k, so those of a block begin k rows into each.
	size := panel * t.Depth()
	b := kernel.GemmB{Data: t.weights[t.first/panel*size+k*panel:], Panel: size, K: panel, Next: depth * panel}
	if end == t.Depth() { // those of further channels
		b.Next = ceilDiv(t.last-t.first, panel)*size - k*panel
	}
	pixels, channels, add := t.to-t.from, t.last-t.first, t.add || k > 0
	if end < t.Depth() {
		kernel.GemmFloat(sums, stride, a, b, pixels, channels, depth, add)
	} else {
		// Bias and bounds in the registers of the last block of k. All layers of MobileNetV2 on 224×224: 5.84 → 5.26 ms
		// with AVX-512 (one thread).
		kernel.GemmFinished(sums, stride, a, b, pixels, channels, depth, add, finish)
	}
}

// pack packs elements k to end-1 of the patches into the strips of the kernel.
func (t *packedTile) pack(left, block, further []float32, k, end int) {
	depth := end - k
	for p := t.from; p < t.to; p += packedRows {
		lane := 0
		t.eachImage(p, min(p+packedRows, t.to), func(image, lo, hi int) {
			// Pixels of the first image begin at lane 0 of the block itself; those of further images are packed from lane 0
			// of their own panel, too, and moved.
			if lane == 0 {
				t.patches(image)(block, k, end, lo, hi)
			} else {
				t.patches(image)(further[:len(block)], k, end, lo, hi)
				kernel.PackLanes(block, further, depth, panel, panel, lane, hi-lo, 1, true)
			}
			lane += hi - lo
		})
		kernel.PackStrips(left[(p-t.from)*depth:], block, 1, panel, packedRows, depth)
	}
}

// pixelPanels are the panels of an image with area pixels.
func pixelPanels(x Images[float32], area int) gemm.Panels[float32] {
	if x.isHalf() {
		return rowPanels(x.Halves, area)
	}
	return func(dst []float32, k0, k1, n0, n1 int) {
		kernel.PackLanes(dst, x.Values[k0*area+n0:], k1-k0, panel, area, 0, n1-n0, 1, false)
	}
}
