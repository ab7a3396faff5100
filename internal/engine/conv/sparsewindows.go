package conv

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// sparseWindows convolves with sparse weights without im2col. The input is copied with its padding, and of strides, one
// copy for each phase (the remainder of a position divided by the stride), so that every tap of the kernel is an offset
// into the copy, and adjacent outputs depend on adjacent elements. A block of outputs is a vector operand at each of
// these offsets (Elsen et al. 2019, arXiv:1911.09723, for 1×1).
//
// Blocks go across the ends of rows: the outputs in between are computed and dropped. The copy is of a band of rows, or
// of several images if they are small.
type sparseWindows struct {
	*Geometry
	axes  [2]phasedAxis
	rows  int // outputs of a band along the first axis
	wide  int // elements of a row of the copy
	bands int // of an image
}

// A phasedAxis is an axis whose positions are divided by the stride.
type phasedAxis struct {
	phases []int // those that taps have
	reach  int   // largest quotient of a tap
	shared int   // positions of padding at the end that those at the start of the next row serve for
}

// sparseCopy is the maximum number of elements of the copy, if one row and one image fit: a part of the L2 cache and of
// the L3 cache.
const sparseCopy = 1 << 18

// sparseWindowsOf returns nil if packed panels of the patches are used: for other than two spatial axes, and for 1×1
// kernels, whose panels are the input itself, unless a block of outputs of all channels is at most half of the L1 cache
// and there are many (measured).
func sparseWindowsOf(g *Geometry) *sparseWindows {
	const depth, area = 64, 256
	// With 64 input channels or fewer, a block of outputs of all channels is half of the L1 cache, and no panels take
	// 0.5 to 0.7 of the time (20×20 to 56×56). For 144 outputs or fewer panels take 0.3 to 0.9.
	if len(g.in) != 2 || g.Pointwise() && (g.InC > depth || g.OutArea() < area) {
		return nil
	}
	w := &sparseWindows{Geometry: g, axes: [2]phasedAxis{g.phased(0), g.phased(1)}}
	// Shared padding is not stored twice: the elements that a row lacks are the first ones of the next row.
	w.wide = g.out[1] + w.axes[1].reach - w.axes[1].shared
	row := g.InC * w.planes() * w.wide
	w.rows = min(max(sparseCopy/max(row, 1)-w.axes[0].reach, 1), g.out[0])
	w.bands = ceilDiv(g.out[0], max(w.rows, 1))
	return w
}

// phased is axis i by phase.
func (w *window) phased(i int) phasedAxis {
	a := phasedAxis{reach: (w.kernel[i] - 1) * w.dilation[i] / w.stride[i]}
	for k := range w.kernel[i] {
		// Phases that no tap has, as of a 1×1 kernel of stride 2, are not copied.
		if phase := k * w.dilation[i] % w.stride[i]; !slices.Contains(a.phases, phase) {
			a.phases = append(a.phases, phase)
		}
	}
	// Padding at the end of a row is that at the start of the next one: 1 of 8 columns of 7×7 images is surplus, not 2
	// of 9.
	// Only what is padding in every phase, both at the start and at the end of a row, can be shared.
	a.shared = a.reach
	for _, phase := range a.phases {
		inside := w.phase(i, phase, 0, w.out[i]+a.reach)
		a.shared = min(a.shared, inside.lo, w.out[i]+a.reach-inside.hi)
	}
	return a
}

// of is the index of the phase and the quotient of a tap.
func (a phasedAxis) of(w *window, axis, tap int) (phase, quotient int) {
	at := tap * w.dilation[axis]
	return slices.Index(a.phases, at%w.stride[axis]), at / w.stride[axis]
}

// phase is the range of the positions from first to first+n-1 of a phase along axis i that are inside the input.
func (w *window) phase(i, phase, first, n int) tap {
	return phaseOf(first*w.stride[i]+phase-w.begin[i], w.stride[i], w.in[i], n)
}

// planes is the number of phases of a channel.
func (w *sparseWindows) planes() int { return len(w.axes[0].phases) * len(w.axes[1].phases) }

// plane and channel are the numbers of elements of the copy of a phase and of a channel.
func (w *sparseWindows) plane() int   { return (w.rows + w.axes[0].reach) * w.wide }
func (w *sparseWindows) channel() int { return w.planes() * w.plane() }

// units is the number of bands of all images and groups, and together that of those that are copied at once, unit
// elements apart.
func (w *sparseWindows) units() int    { return w.Products() * w.bands }
func (w *sparseWindows) together() int { return min(max(sparseCopy/max(w.unit(), 1), 1), w.units()) }
func (w *sparseWindows) unit() int     { return w.InC * w.channel() }

// places is the number of outputs of a band that are computed: to the end of the last row, and those between rows.
func (w *sparseWindows) places() int { return (w.rows-1)*w.wide + w.out[1] }

// slack is the maximum number of elements after a copy that are read: padding of the last row, and surplus outputs of
// the last block.
func (w *sparseWindows) slack() int { return w.axes[1].shared + kernel.SparseWide() }

// slot is the number of scratch elements of a worker: sums, decoded values, and a row.
func (w *sparseWindows) slot() int {
	return spmm.PartSums(w.OutC, kernel.SparseWide()) + kernel.SparseWork + max(w.in[1], w.out[1], stripSize)
}

func (w *sparseWindows) work(workers int) int64 {
	return w.TableSize() + aligned(4*int64(w.together()*w.unit()+w.slack())) + int64(workers)*aligned(4*int64(w.slot()))
}

// offsets are those of the rows of weights, in table.
func (w *sparseWindows) offsets(table []int32) []kernel.SparseOffsets {
	size, channel := w.kernelSize(), w.channel()
	for tap := range size {
		py, row := w.axes[0].of(w.window, 0, tap/w.kernel[1])
		px, col := w.axes[1].of(w.window, 1, tap%w.kernel[1])
		at := (py*len(w.axes[1].phases)+px)*w.plane() + row*w.wide + col
		for c := range w.InC {
			// A load per element, of about 13: the index stays a byte, as the size of the image is not known when
			// weights are packed.
			table[c*size+tap] = int32(c*channel + at)
		}
	}
	return spmm.Offsets(table)
}

// run convolves j with the weights of each group.
func (w *sparseWindows) run(p *op.Pool, work []byte, j job, weights sparseWeights) {
	rows := w.offsets(kernel.Words[int32](work[:4*w.Depth()]))
	buf := scratch[float32](work[w.TableSize():])
	copied := buf.take(w.together()*w.unit() + w.slack())
	slots := make([][]float32, p.Workers())
	for i := range slots {
		slots[i] = buf.take(w.slot())
	}
	// The last row has no next one whose padding it could read, and the last block surplus outputs.
	clear(copied[len(copied)-w.slack():])
	// At most 1 MiB is copied at once, by all workers, who share it.
	for first := 0; first < w.units(); first += w.together() {
		n := min(w.together(), w.units()-first)
		pieces := ceilDiv(w.InC, stripChannels)
		p.Slots(n*pieces, func(i, slot int) {
			u, c := w.at(first+i/pieces), i%pieces*stripChannels
			end, to := min(w.InC, c+stripChannels), part(copied, i/pieces, w.unit())[c*w.channel():]
			if j.lastX {
				u.copyLast(to, j.x.Values, c, end-c, slots[slot])
				return
			}
			for i := range end - c {
				u.copy(part(to, i, w.channel()), j.x, c+i, slots[slot])
			}
		})
		w.multiply(p, j, weights, first, n, copied, rows, slots)
	}
}

// multiply computes the outputs of n units, from the first one on.
func (w *sparseWindows) multiply(p *op.Pool, j job, weights sparseWeights, first, n int, copied []float32,
	rows []kernel.SparseOffsets, slots [][]float32) {
	blocks := ceilDiv(w.places(), kernel.SparseWide())
	// Blocks of equal numbers of vectors of eight columns, instead of full ones and a short last one.
	cols := (ceilDiv(w.places(), blocks) + 7) &^ 7
	const perWorker = 4
	wanted := ceilDiv(perWorker*p.Workers(), n*blocks)
	parts := make([][]spmm.Part, len(weights))
	for g, m := range weights {
		// Products of few columns are divided by output channels, too, with about as many elements in each part.
		parts[g] = m.Parts(wanted)
	}
	most := 0
	for _, of := range parts {
		most = max(most, len(of))
	}
	p.Slots(n*blocks*most, func(i, slot int) {
		// Parts of a block follow each other, so that the next one finds the rows of the copy in the cache.
		u := w.at(first + i/most/blocks)
		if of := parts[u.group]; i%most < len(of) {
			block := i / most % blocks * cols
			u.multiply(of[i%most], j, copied[i/most/blocks*w.unit()+block:], rows, block, cols, slots[slot])
		}
	})
}

// A sparseUnit is a band of rows of one image and group.
type sparseUnit struct {
	*sparseWindows
	product, group int
	row, end       int // of the output
}

func (w *sparseWindows) at(i int) sparseUnit {
	product, row := i/w.bands, i%w.bands*w.rows
	return sparseUnit{w, product, product % w.Groups, row, min(row+w.rows, w.out[0])}
}

// copy copies channel c of the input by phases, with its padding.
func (u sparseUnit) copy(to []float32, x Images[float32], c int, buffer []float32) {
	first := (u.product*u.InC + c) * u.InArea()
	for _, py := range u.axes[0].phases {
		rows := u.phase(0, py, u.row, u.rows+u.axes[0].reach)
		for _, px := range u.axes[1].phases {
			plane := to[:u.plane()]
			to = to[len(plane):]
			columns := u.phase(1, px, 0, u.wide)
			clear(plane)
			high, wide := rows.hi-rows.lo, columns.hi-columns.lo
			if wide == 0 {
				continue
			}
			at, input := rows.lo*u.wide+columns.lo, first+rows.from*u.in[1]
			if u.stride[1] == 1 && !x.isHalf() && high > 0 {
				// In one call: with a call of copy for each row, images of 7×7 and 14×14 spent a quarter of their time
				// in it at 95 % zeros.
				kernel.CopyRows(plane[at:], u.wide, x.Values[input+columns.from:], u.stride[0]*u.in[1], high, wide)
				continue
			}
			for r := range high {
				// Float16 is converted by whole rows of the input, before the stride leaves out elements.
				row := read(x, input+r*u.stride[0]*u.in[1], u.in[1], buffer)
				stridedCopyFloat(plane[at+r*u.wide:][:wide], row[columns.from:], u.stride[1])
			}
		}
	}
}

// multiply computes the outputs of a part of the channels from place first of the grid on, and applies bias, addend and
// activation.
func (u sparseUnit) multiply(p spmm.Part, j job, x []float32, rows []kernel.SparseOffsets, first, cols int,
	work []float32) {
	decoded, work := work[:kernel.SparseWork], work[kernel.SparseWork:]
	b := sparseBlock{u, first, cols, p.From, p.To - p.From, j.lastY, nil}
	sums := work[:ceilDiv(b.channels, kernel.SparseQuad)*kernel.SparseQuad*cols]
	b.strip = work[len(sums):]
	if j.add {
		b.load(sums, j.y)
	}
	p.MultiplyAt(sums, x, rows, cols, j.add, decoded)
	if j.bias != nil {
		for m := range b.channels {
			row := part(sums, m, cols)
			kernel.AddScalar(row, row, j.bias[u.group*u.OutC+p.From+m])
		}
	}
	// All rows in one call: tiles of 32 columns have rows of 32 sums, and a call for each took 18 % of the time of
	// MobileNetV2 (224×224) at 95 % zeros.
	if j.activate != nil {
		j.activate(sums)
	}
	b.store(sums, j.y)
}

// A sparseBlock is cols places of a unit from place first of the grid on, and consecutive output channels.
type sparseBlock struct {
	sparseUnit
	first, cols       int
	channel, channels int
	last              bool      // the output has channels last
	strip             []float32 // scratch memory
}

// load sets sums to outputs.
func (b *sparseBlock) load(sums []float32, y Images[float32]) {
	if b.last {
		b.loadLast(sums, y.Values)
		return
	}
	b.spans(func(lane, at, n int) {
		kernel.CopyRows(sums[lane:], b.cols, y.Values[b.output()+at:], b.OutArea(), b.channels, n)
	})
}

// store stores sums as outputs.
func (b *sparseBlock) store(sums []float32, y Images[float32]) {
	switch {
	case b.last:
		b.storeLast(sums, y.Values)
		return
	case !y.isHalf():
		b.spans(func(lane, at, n int) {
			kernel.CopyRows(y.Values[b.output()+at:], b.OutArea(), sums[lane:], b.cols, b.channels, n)
		})
		return
	}
	b.spans(func(lane, at, n int) {
		for m := range b.channels {
			put(y, b.output()+m*b.OutArea()+at, sums[m*b.cols+lane:][:n])
		}
	})
}

// output is where the first channel of the output is.
func (b *sparseBlock) output() int { return (b.product*b.OutC + b.channel) * b.OutArea() }

// spans calls f for the outputs in a block, a row at a time: n of them from lane on are at an index of a channel.
func (b *sparseBlock) spans(f func(lane, at, n int)) {
	for row := b.first / b.wide; row < b.end-b.row && row*b.wide < b.first+b.cols; row++ {
		from, to := max(row*b.wide, b.first), min(row*b.wide+b.out[1], b.first+b.cols)
		if from < to {
			f(from-b.first, (b.row+row)*b.out[1]+from-row*b.wide, to-from)
		}
	}
}
