package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Winograd's F(2×2, 3×3) needs 16 multiplications where a 3×3 convolution of stride 1 needs 36. Weights are transformed
// once, when the model is loaded: this takes 16/9 of their memory. Errors are those of a plain product, whose sums are
// nine times as long, up to about 64 channels, and less than twice as large beyond (measured); an infinite element
// makes NaN of its sums.
//
// A block of tiles is transformed by one worker in vectors of channels, multiplied with the weights of some output
// channels and transformed back, in scratch memory that stays in the cache. If workers share a block, each transforms
// it for its output channels: this takes less time than reading what another processor wrote.
type winograd struct {
	*Geometry
	weights      winogradWeights
	down, across int // tiles of an image
	images       int // of a block: whole ones, or
	rows, wide   int // the largest number of rows and columns of tiles of one
	inC, outC    int // channels in whole vectors
	slab         int // output channels of a task
}

// winogradWeights is the result of Prepare for W: by group, number of the tile and panel of output channels, which are
// right operands.
type winogradWeights []float32

const (
	manyKernels   = 1 << 18 // above which reading the weights costs more than it saves
	winogradDepth = 256     // products summed at once
)

// winogradFits reports whether weights of this shape are transformed when the model is loaded.
func winogradFits(n *op.Node, w *ir.Array) bool {
	if w.DType != ir.Float || len(w.Shape) != 4 || w.Shape[2] != 3 || w.Shape[3] != 3 {
		return false
	}
	for _, name := range []string{"strides", "dilations"} {
		for _, v := range n.Ints(name) {
			if v != 1 {
				return false
			}
		}
	}
	groups := max(n.Int("group", 1), 1)
	// The size of the images is not known yet, and only one form of a weight is held, so 7×7 images, whose output is
	// rounded up to 8×8, are slower than they could be: 512 channels take 1.05 (AVX-512) and 0.91 (AVX2) of the time of
	// the product with one image, and 0.68 with eight.
	return winogradPays(int(w.Shape[1]), int(w.Shape[0]/groups)) && w.Shape[0]*w.Shape[1] <= manyKernels
}

// winogradPays reports whether transforms take less time than they save, for so many channels of a group and large
// images. Windows of more input channels than denseWindows supports have to be copied for a product, which takes as
// long as transforming them. This cost model is fitted to measurements.
func winogradPays(inC, outC int) bool {
	// Windows that denseWindows does not support are copied for a product, which takes as long as transforming them.
	// Time divided by that of the product, one core of an Intel Xeon with AVX-512 / its AVX2: 32 to 32 channels of
	// 28×28 0.45 / 0.52, 64 to 8 of 56×56 0.61 / 0.76, 256 to 256 of 14×14 0.49 / 0.49.
	if 9*inC > gemm.Depth {
		return outC >= panel/2
	}
	// Fitted to, among others: 3 to 64 channels of 112×112 1.56 / 1.49, 8 to 64 of 56×56 0.75 / 0.88, 12 to 16 of
	// 208×208 1.36 / 1.26, 16 to 16 of 104×104 1.00 / 0.90, 24 to 24 of 104×104 0.58 / 0.70. The choice is the same on
	// all CPUs.
	return 12*wholePanels(inC)+3*outC < inC*outC
}

// convStates are the types of results of prepareConv.
func convStates() []any { return []any{winogradWeights(nil), packedWeights(nil), sparseWeights(nil)} }

// prepareConv packs constant weights as sparse matrices or in panels, or transforms them.
func prepareConv(n *op.Node, in []*ir.Array, p *op.Pool) (*op.Prepared, error) {
	w := op.Opt(in, 1)
	if w == nil {
		return nil, nil
	}
	if w.DType == ir.BFloat16 {
		w = widened32(w)
	}
	// First: sparse weights are faster than both at 80 % zeros (spmm.ConvDensity).
	if sparse := prepareSparse(n, w, p); sparse != nil {
		return sparse, nil
	}
	switch w = widened32(w); {
	case packedFits(n, w):
		return preparePacked(w, p), nil
	case !winogradFits(n, w):
		return nil, nil
	}
	groups, inC := int(max(n.Int("group", 1), 1)), int(w.Shape[1])
	outC := int(w.Shape[0]) / groups
	bytes := 4 * int64(groups*winogradSize(outC, inC))
	u := kernel.Words[float32](ir.AlignedBytes(bytes))
	transformWeights(p, u, ir.View[float32](w), groups, outC, inC)
	return &op.Prepared{State: winogradWeights(u), Bytes: bytes, Drops: []int{1}}, nil
}

// winogradSize is the number of elements of transformed weights of a group.
func winogradSize(outC, inC int) int { return kernel.WinogradTile * wholePanels(outC) * inC }

// wholePanels rounds a number of channels up to whole panels, which are also the vectors of the transforms.
func wholePanels(channels int) int { return ceilDiv(channels, panel) * panel }

// winogradBytes is the memory of transformed weights.
func winogradBytes(g *Geometry) int64 { return 4 * int64(g.Groups*winogradSize(g.OutC, g.InC)) }

// transformWeights writes the contents of winogradWeights to u.
func transformWeights(p *op.Pool, u, w []float32, groups, outC, inC int) {
	panels, step := ceilDiv(outC, panel), wholePanels(outC)*inC
	p.For(groups*panels, func(i int) {
		group, first := i/panels, i%panels*panel
		to := part(u, group, winogradSize(outC, inC))[first*inC:]
		n := min(panel, outC-first)
		kernels := w[(group*outC+first)*inC*9:]
		for c := range inC {
			for m := range n {
				kernel.WinogradWeights(to[c*panel+m:], step, part(kernels, m*inC+c, 9))
			}
			// Channels after the last one are multiplied, too.
			for number := 0; number < kernel.WinogradTile && n < panel; number++ {
				clear(to[number*step+c*panel:][n:panel])
			}
		}
	})
}

// Limits of a block: its tiles fill whole strips of the kernels, and its scratch memory is in the L2 cache.
const (
	minWinogradTiles = 48
	maxWinogradTiles = 96
	winogradMemory   = 1 << 18 // elements of transformed input and sums
	winogradSlab     = 64      // output channels
)

// winogradOf is the plan for images of this size.
func winogradOf(g *Geometry, weights winogradWeights, workers int) *winograd {
	w := &winograd{Geometry: g, weights: weights, inC: wholePanels(g.InC), outC: wholePanels(g.OutC)}
	w.down, w.across = ceilDiv(g.out[0], 2), ceilDiv(g.out[1], 2)
	w.slab = min(w.outC, winogradSlab)
	// One worker transforms a block, multiplies it and transforms it back in its L2 cache: 167 instead of 99 Gmac/s for
	// 64 channels of 56×56 (one core of an Intel Xeon with AVX-512) when phases of all blocks followed each other.
	tiles := min(max(winogradMemory/(kernel.WinogradTile*(w.inC+w.slab)), minWinogradTiles), maxWinogradTiles)
	w.images, w.rows, w.wide = 1, w.down, w.across
	// Small images: several of them fill a block. Large ones are cut into rectangles of tiles.
	if image := w.down * w.across; image <= tiles {
		w.images = max(balanced(g.Batch, tiles/max(image, 1), workers), 1)
	} else {
		w.wide = balanced(w.across, tiles, 1)
		w.rows = balanced(w.down, tiles/w.wide, workers)
	}
	// Workers share a block by its output channels, and each transforms it: that takes less time than reading what
	// another processor wrote.
	for workers > 1 && w.tasks() < tilesPerWorker*workers && w.slab > panel &&
		w.tiles()*w.slab*g.InC*kernel.WinogradTile >= 2*minTileWork {
		w.slab = wholePanels(w.slab / 2)
	}
	return w
}

// balanced is the largest of similar parts of n that are at most most: of as few as possible, but as many for each of
// the workers.
func balanced(n, most, workers int) int {
	parts := ceilDiv(n, max(most, 1))
	if parts > 1 {
		// 128 channels of 28×28 had three blocks for two workers: one of them computed 15 % more rows of tiles.
		parts = ceilDiv(parts, workers) * workers
	}
	return ceilDiv(n, max(parts, 1))
}

// tiles is the largest number of tiles of a block.
func (w *winograd) tiles() int { return w.images * w.rows * w.wide }

// vertical, horizontal and slabs are the numbers of parts of the tile rows and columns of an image, and of the output
// channels.
func (w *winograd) vertical() int   { return ceilDiv(w.down, max(w.rows, 1)) }
func (w *winograd) horizontal() int { return ceilDiv(w.across, max(w.wide, 1)) }
func (w *winograd) slabs() int      { return ceilDiv(w.outC, w.slab) }

// blocks is their number, of all groups of channels.
func (w *winograd) blocks() int {
	return w.Groups * ceilDiv(w.Batch, w.images) * w.vertical() * w.horizontal()
}

func (w *winograd) tasks() int { return w.blocks() * w.slabs() }

// strips is the number of rows of the products: if more than half of the last strip of the kernel is needed, the whole
// strip is faster.
func strips(tiles int) int {
	if high := kernel.GemmRows(); 2*(tiles%high) >= high {
		return ceilDiv(tiles, high) * high
	}
	return tiles
}

// step is the number of elements of one number of all tiles. An additional vector avoids cache conflicts of the
// numbers.
func (w *winograd) step(channels int) int { return strips(w.tiles())*channels + panel }

// parts are the numbers of elements of a worker's scratch memory: transformed input, sums, rows of pixels of the input
// with padding or of the output, the same without padding or with channels first, and the bias.
func (w *winograd) parts() [5]int {
	padded, in, out := (2*w.rows+2)*(2*w.wide+2)*w.inC, (2*w.rows+2)*min(w.in[1], 2*w.wide+2)*w.inC,
		4*(w.rows*w.wide+1)*w.slab
	return [5]int{kernel.WinogradTile * w.step(w.inC), kernel.WinogradTile * w.step(w.slab), max(padded, out),
		max(in, out), w.slab}
}

// slot is the size of a worker's scratch memory.
func (w *winograd) slot() (size int64) {
	for _, n := range w.parts() {
		size += aligned(4 * int64(n))
	}
	return size
}

func (w *winograd) work(workers int) int64 { return int64(workers) * w.slot() }

func (w *winograd) run(p *op.Pool, work []byte, j job) {
	size := int(w.slot())
	blocks := make([]winogradBlock, p.Workers())
	p.Slots(w.tasks(), func(task, slot int) {
		b := &blocks[slot]
		// Tasks of a block follow each other, so that a slot mostly has its input transformed already.
		if i := task / w.slabs(); b.winograd == nil || b.number != i {
			*b = w.block(i, work[slot*size:][:size])
			b.transform(j)
		}
		first := task % w.slabs() * w.slab
		b.compute(j, first, min(first+w.slab, w.OutC))
	})
}
