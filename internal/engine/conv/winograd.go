package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Winograd's F(2×2, 3×3) needs 16 multiplications where a 3×3 convolution of stride 1 needs 36. Weights are transformed once, when the
// model is loaded: this takes 16/9 of their memory. Errors are those of a plain product, whose sums are nine times as long, up to about 64
// channels, and less than twice as large beyond (measured); an infinite element makes NaN of its sums.
//
// A block of tiles is transformed, multiplied with the weights and transformed back in scratch memory that stays in the cache. With enough
// blocks each one is computed by one worker, except for the last few, which would leave workers idle; else each by all workers. Every element
// is summed in the same order either way.
type winograd struct {
	*Geometry
	weights winogradWeights // by group, index in the tile, and output and input channel
	wide    int             // groups of tiles in a row of them
	segment int             // of those in a block
	units   int             // segments of pairs of rows of tiles in a block
	mask    []int32
	nothing []float32 // rows outside the input
}

// winogradWeights is the result of Prepare for W.
type winogradWeights []float32

const (
	manyKernels   = 1 << 17 // above which reading the weights costs more than it saves
	winogradDepth = 256     // products summed at once
	winogradTask  = 16      // channels transformed at once
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
	return winogradPays(int(w.Shape[1]), int(w.Shape[0]/groups)) && w.Shape[0]*w.Shape[1] <= manyKernels
}

// winogradPays reports whether transforms take less time than they save, for so many channels of a group and large images: those of an input
// channel take as long as is saved with 14 output channels, those of an output channel as with 9 input channels. This cost model is fitted to
// measurements (docs/decisions/kernels.md).
func winogradPays(inC, outC int) bool { return 14*inC+9*outC < inC*outC }

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
	bytes := 4 * int64(groups*outC*inC*kernel.WinogradTile)
	u := kernel.Words[float32](ir.AlignedBytes(bytes))
	transformWeights(p, u, ir.View[float32](w), groups, outC, inC)
	return &op.Prepared{State: winogradWeights(u), Bytes: bytes, Drops: []int{1}}, nil
}

// winogradBytes is the memory of transformed weights.
func winogradBytes(g *Geometry) int64 {
	return 4 * int64(g.Groups*g.OutC*g.InC*kernel.WinogradTile)
}

// transformWeights writes the contents of winogradWeights to u.
func transformWeights(p *op.Pool, u, w []float32, groups, outC, inC int) {
	kernels := outC * inC
	p.Rows(groups*outC, 1, func(first, end int) {
		for m := first; m < end; m++ {
			group := part(u, m/outC, kernels*kernel.WinogradTile)
			for c := range inC {
				kernel.WinogradWeights(group[m%outC*inC+c:], kernels, part(w, m*inC+c, 9))
			}
		}
	})
}

// winogradOf is the plan for images of this size.
func winogradOf(g *Geometry, weights winogradWeights) *winograd {
	w := &winograd{Geometry: g, weights: weights, nothing: make([]float32, g.in[1]+1)}
	w.wide = ceilDiv(ceilDiv(g.out[1], 2), 4)
	// Groups of tiles in a block: few enough to stay in the cache, but enough to amortize reading the weights.
	across := min(max(1024/(g.InC+g.OutC), 4), 8)
	w.segment = min(w.wide, across)
	w.units = across / w.segment
	w.mask = kernel.WinogradMask(g.begin[1], g.in[1], w.wide)
	return w
}

func (w *winograd) pairs() int { return ceilDiv(ceilDiv(w.out[0], 2), 2) }

func (w *winograd) segments() int { return ceilDiv(w.wide, w.segment) }

// blocks of one group of channels.
func (w *winograd) blocks() int { return ceilDiv(w.Batch*w.pairs()*w.segments(), w.units) }

// step is the number of elements of one index of all tiles of a block, a multiple of a panel. One additional panel avoids cache conflicts
// of the rows.
func (w *winograd) step() int {
	return ceilDiv(w.units*w.segment*kernel.WinogradGroup, panel)*panel + panel
}

// slot is the number of scratch elements of a block, and line those of four rows of the output, or of the rows of the input that they
// depend on.
func (w *winograd) slot() int {
	return kernel.WinogradTile * (w.InC + w.OutC) * w.step()
}

func (w *winograd) line() int {
	return max(4*w.segment*kernel.WinogradGroup, winogradRows*min(w.in[1], w.segment*kernel.WinogradGroup+2))
}

// winogradRows is the number of rows of the input that a pair of rows of tiles depends on.
const winogradRows = 6

// perWorker is the number of blocks that are computed by one worker each, of all groups of channels.
func (w *winograd) perWorker(workers int) int {
	n := w.Groups * w.blocks()
	if n < 2*workers {
		return 0
	}
	if rest := n % workers; 2*rest <= workers {
		return n - rest
	}
	return n
}

func (w *winograd) work(workers int) int64 {
	return int64(w.slots(workers))*aligned(4*int64(w.slot())) + int64(workers)*aligned(4*int64(w.line()))
}

// slots is the number of blocks that are computed at once.
func (w *winograd) slots(workers int) int {
	if w.perWorker(workers) > 0 {
		return workers
	}
	return 1
}

// A winogradBlock is some tiles of one group of channels.
type winogradBlock struct {
	*winograd
	group       int
	first, last int       // units, of all images
	v, m        []float32 // by index: input channels and sums of output channels, of every tile
}

// A sharing runs f for each of n tasks, with memory for a line: on all workers, or on the calling one.
type sharing func(n int, f func(i int, line []float32))

func (w *winograd) run(p *op.Pool, work []byte, j job) {
	buf, lines := scratch[float32](work), make([][]float32, p.Workers())
	for i := range lines {
		lines[i] = buf.take(w.line())
	}
	slots := make([][]float32, w.slots(p.Workers()))
	for i := range slots {
		slots[i] = buf.take(w.slot())
	}
	perWorker := w.perWorker(p.Workers())
	p.Slots(perWorker, func(i, slot int) {
		w.block(i, slots[slot]).run(j, func(n int, f func(i int, line []float32)) {
			for i := range n {
				f(i, lines[slot])
			}
		})
	})
	for i := perWorker; i < w.Groups*w.blocks(); i++ {
		w.block(i, slots[0]).run(j, func(n int, f func(i int, line []float32)) {
			p.Slots(n, func(i, slot int) { f(i, lines[slot]) })
		})
	}
}

// block is the i-th one of all groups.
func (w *winograd) block(i int, slot []float32) *winogradBlock {
	b := &winogradBlock{winograd: w, group: i / w.blocks(), first: i % w.blocks() * w.units}
	b.last = min(b.first+w.units, w.Batch*w.pairs()*w.segments())
	v := kernel.WinogradTile * w.InC * w.step()
	b.v, b.m = slot[:v], slot[v:]
	return b
}

func (b *winogradBlock) run(j job, parallel sharing) {
	inChannels, outChannels := ceilDiv(b.InC, winogradTask), ceilDiv(b.OutC, winogradTask)
	parallel(inChannels, func(i int, line []float32) {
		for c := i * winogradTask; c < min(b.InC, (i+1)*winogradTask); c++ {
			b.transform(j.x, c, line)
		}
	})
	const high = 120 // rows of a product, a multiple of the kernel's
	parts := ceilDiv(b.OutC, high)
	parallel(kernel.WinogradTile*parts, func(i int, _ []float32) {
		b.multiply(i/parts, i%parts*high, min(b.OutC, (i%parts+1)*high))
	})
	parallel(outChannels, func(i int, line []float32) {
		for m := i * winogradTask; m < min(b.OutC, (i+1)*winogradTask); m++ {
			b.output(j, m, line)
		}
	})
}

// A unit is a segment of a pair of rows of tiles.
type unit struct {
	image, row int // of the output
	from, to   int // groups of tiles
	at         int // tile of the block
}

// each calls f for the units of the block.
func (b *winogradBlock) each(f func(u unit)) {
	for i := b.first; i < b.last; i++ {
		segment, pair := i%b.segments(), i/b.segments()
		u := unit{image: pair / b.pairs(), row: 4 * (pair % b.pairs()), from: segment * b.segment}
		u.to = min(u.from+b.segment, b.wide)
		u.at = (i - b.first) * b.segment * kernel.WinogradGroup
		f(u)
	}
}

// transform transforms one channel of the input.
func (b *winogradBlock) transform(x Images[float32], c int, line []float32) {
	v, step := b.v[c*b.step():], b.InC*b.step()
	b.each(func(u unit) {
		plane := (u.image*b.Groups+b.group)*b.InC + c
		columns := u.from * kernel.WinogradGroup
		mask := b.mask[columns : u.to*kernel.WinogradGroup+2]
		left, skip := max(b.begin[1]-columns, 0), max(columns-b.begin[1], 0)
		first := u.row - b.begin[0]
		var values []float32
		offset, stride := -skip, b.in[1] // row i of the channel starts at i·stride-offset
		if x.isHalf() {
			values, offset, stride = line, b.convert(part(x.Halves, plane, b.InArea()), first, skip, len(mask), line), min(b.in[1]-skip, len(mask))
		} else {
			values = part(x.Values, plane, b.InArea())
		}
		var rows [8][]float32
		for i := range rows {
			at := first + i/4*2 + i%4
			rows[i] = b.nothing
			if at >= 0 && at < b.in[0] && skip < b.in[1] {
				rows[i] = values[at*stride-offset:]
			}
		}
		kernel.WinogradInput(v[u.at:], step, &rows, left, mask)
	})
}

// convert converts the rows of a channel that a unit depends on, from row first on, and of each at most n columns after the first skip ones;
// all rows at once if they are contiguous. It returns the elements before them.
func (b *winogradBlock) convert(plane []uint16, first, skip, n int, line []float32) (offset int) {
	wide := b.in[1]
	from, to := min(max(first, 0), b.in[0]), min(first+winogradRows, b.in[0])
	n = min(wide-skip, n)
	if n == wide && from < to {
		kernel.F32FromF16(line[:(to-from)*wide], plane[from*wide:to*wide])
		return from * wide
	}
	for i := from; i < to && n > 0; i++ {
		kernel.F32FromF16(part(line, i-from, n), plane[i*wide+skip:][:n])
	}
	return from * n
}

// multiply sums over the input channels for one index of the tiles, and output channels from m to end.
func (b *winogradBlock) multiply(number, m, end int) {
	u := part(part(b.weights, b.group, kernel.WinogradTile*b.OutC*b.InC), number, b.OutC*b.InC)
	v, sums := part(b.v, number, b.InC*b.step()), part(b.m, number, b.OutC*b.step())
	tiles := (b.last - b.first) * b.segment * kernel.WinogradGroup
	for k := 0; k < b.InC; k += winogradDepth {
		depth := min(winogradDepth, b.InC-k)
		left := kernel.GemmA{Data: u[m*b.InC+k:], Strip: kernel.GemmRows() * b.InC, Row: b.InC, K: 1}
		right := kernel.GemmB{Data: v[k*b.step():], Panel: panel, K: b.step()}
		kernel.GemmFloat(sums[m*b.step():], b.step(), left, right, end-m, tiles, depth, k > 0)
	}
}

// output computes one channel of the output.
func (b *winogradBlock) output(j job, m int, line []float32) {
	first := float32(0)
	if j.bias != nil {
		first = j.bias[b.group*b.OutC+m]
	}
	var rows [4][]float32
	for i := range rows {
		rows[i] = part(line, i, b.segment*kernel.WinogradGroup)
	}
	b.each(func(u unit) {
		kernel.WinogradOutput(&rows, b.m[m*b.step()+u.at:], b.OutC*b.step(), u.to-u.from, first)
		plane := j.y.from(((u.image*b.Groups+b.group)*b.OutC + m) * b.OutArea())
		from, to := u.from*kernel.WinogradGroup, min(u.to*kernel.WinogradGroup, b.out[1])
		for r := 0; r < 4 && u.row+r < b.out[0]; r++ {
			at, sums := (u.row+r)*b.out[1]+from, rows[r][:to-from]
			if plane.isHalf() {
				if j.activate != nil {
					j.activate(sums)
				}
				put(plane, at, sums)
				continue
			}
			row := plane.Values[at:][:len(sums)]
			if j.add {
				kernel.Add(row, row, sums)
			} else {
				copy(row, sums)
			}
			if j.activate != nil {
				j.activate(row)
			}
		}
	})
}
