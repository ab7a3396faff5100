package conv

import (
	"github.com/mcompress/mcompress/internal/kernel"
)

// A winogradBlock is some tiles of one group of channels, whose input is transformed.
type winogradBlock struct {
	*winograd
	number, group int
	image, images int
	row, rows     int // of tiles
	column, wide  int // of tiles
	v, m          []float32
	pixels, plain []float32 // rows of pixels, and without padding or with channels first
	first         []float32 // the bias
}

// block is the i-th one of all groups.
func (w *winograd) block(i int, work []byte) winogradBlock {
	b, buf, sizes := winogradBlock{winograd: w, number: i}, scratch[float32](work), w.parts()
	for k, s := range []*[]float32{&b.v, &b.m, &b.pixels, &b.plain, &b.first} {
		*s = buf.take(sizes[k])
	}
	b.column, b.wide, i = interval(i, w.across, w.horizontal())
	b.row, b.rows, i = interval(i, w.down, w.vertical())
	b.image, b.images, i = interval(i, w.Batch, ceilDiv(w.Batch, w.images))
	b.group = i
	return b
}

// interval is the first of n elements, and their number, in part i%parts of similar parts, and i/parts.
func interval(i, n, parts int) (first, size, rest int) {
	rest, i = i/parts, i%parts
	first = i * n / parts
	return first, (i+1)*n/parts - first, rest
}

// transform transforms the input.
func (b *winogradBlock) transform(j job) {
	line := (2*b.wide + 2) * b.inC
	for image := range b.images {
		b.fill(j, b.image+image, line)
		for row := range b.rows {
			at := (image*b.rows + row) * b.wide * b.inC
			kernel.WinogradInput(b.v[at:], b.step(b.inC), b.pixels[2*row*line:], line, b.inC, b.wide)
		}
	}
}

// fill writes the pixels of an image under the tiles, with padding.
func (b *winogradBlock) fill(j job, image, line int) {
	top, left := 2*b.row-b.begin[0], 2*b.column-b.begin[1]
	from, to := min(max(top, 0), b.in[0]), max(min(top+2*b.rows+2, b.in[0]), 0)
	lo, hi := min(max(left, 0), b.in[1]), max(min(left+2*b.wide+2, b.in[1]), 0)
	n := max(hi-lo, 0) * b.inC
	inside := b.inside(j, image, from, to, lo, hi)
	for r := range 2*b.rows + 2 {
		row := part(b.pixels, r, line)
		if at := top + r; at < 0 || at >= b.in[0] || n == 0 {
			clear(row)
		} else {
			before := (lo - left) * b.inC
			clear(row[:before])
			copy(row[before:][:n], inside(at))
			clear(row[before+n:])
		}
	}
}

// inside returns the function of a row of pixels of the input, of columns lo to hi-1, for rows from to to-1.
func (b *winogradBlock) inside(j job, image, from, to, lo, hi int) func(row int) []float32 {
	// Pixels are vectors of channels already: nothing to transpose.
	if j.lastX {
		return func(row int) []float32 { return j.x.Values[((image*b.in[0]+row)*b.in[1]+lo)*b.inC:] }
	}
	n := hi - lo
	if n <= 0 || from >= to {
		return nil
	}
	x := j.x.from((image*b.Groups + b.group) * b.InC * b.InArea())
	// Whole rows of pixels are contiguous, so one call transposes all rows of the block.
	if n == b.in[1] {
		b.pixelsOf(b.plain, x, from*n, (to-from)*n)
	} else {
		for row := from; row < to; row++ {
			b.pixelsOf(b.plain[(row-from)*n*b.inC:], x, row*b.in[1]+lo, n)
		}
	}
	return func(row int) []float32 { return b.plain[(row-from)*n*b.inC:] }
}

// pixelsOf writes n contiguous pixels of an image with channels first.
func (b *winogradBlock) pixelsOf(dst []float32, x Images[float32], at, n int) {
	if !x.isHalf() {
		kernel.TransposeInto(dst, b.inC, x.Values[at:], b.InArea(), b.InC, n)
		return
	}
	// The memory of the sums is free until compute: it has a vector of channels in float32 at a time.
	for c := 0; c < b.InC; c += panel {
		high := min(panel, b.InC-c)
		for i := range high {
			kernel.F32FromF16(part(b.m, i, n), x.Halves[(c+i)*b.InArea()+at:][:n])
		}
		kernel.TransposeInto(dst[c:], b.inC, b.m, n, high, n)
	}
}

// compute computes output channels first to last-1.
func (b *winogradBlock) compute(j job, first, last int) {
	// Each number is a product of its own, with tiles as rows.
	for number := range kernel.WinogradTile {
		b.multiply(number, first, wholePanels(last-first))
	}
	// Whole vectors of channels: those after the last one start at 0 and are not stored.
	clear(b.first)
	if j.bias != nil {
		copy(b.first, j.bias[b.group*b.OutC+first:][:last-first])
	}
	for image := range b.images {
		b.output(image, wholePanels(last-first))
		b.store(j, b.image+image, first, last)
	}
}

// multiply sums over the input channels for one number of the tiles, and the output channels from first on.
func (b *winogradBlock) multiply(number, first, channels int) {
	u := part(b.weights, b.group, winogradSize(b.OutC, b.InC))[(number*b.outC+first)*b.InC:]
	// Element (k, tile) of every one of the 16 numbers is a step apart, so each number is a plain product.
	v, sums := b.v[number*b.step(b.inC):], b.m[number*b.step(b.slab):]
	// Tiles after the last one have what the scratch memory had: their sums are not used.
	tiles := strips(b.images * b.rows * b.wide)
	for k := 0; k < b.InC; k += winogradDepth {
		depth := min(winogradDepth, b.InC-k)
		left := kernel.GemmA{Data: v[k:], Strip: kernel.GemmRows() * b.inC, Row: b.inC, K: 1}
		right := kernel.GemmB{Data: u[k*panel:], Panel: panel * b.InC, K: panel, Next: depth * panel}
		// Prefetched: 512 channels of 7×7 2.03 → 1.69 to 1.86 ms with AVX-512, 2.95 → 2.27 with AVX2.
		if k+depth == b.InC {
			right.Next = b.outC*b.InC - k*panel // those of the next number
		}
		kernel.GemmFloat(sums, channels, left, right, tiles, channels, depth, k > 0)
	}
}

// columns and lines are the numbers of columns and rows of the output of an image.
func (b *winogradBlock) columns() int { return min(2*b.wide, b.out[1]-2*b.column) }
func (b *winogradBlock) lines() int   { return min(2*b.rows, b.out[0]-2*b.row) }

// output writes an image's pixels of the output, of so many channels. A last column of tiles that exceeds the image is
// computed separately.
func (b *winogradBlock) output(image, channels int) {
	line, whole, step := b.columns()*channels, b.columns()/2, b.step(b.slab)
	for row := range b.rows {
		y, m := b.pixels[2*row*line:], b.m[(image*b.rows+row)*b.wide*channels:]
		kernel.WinogradOutput(y, line, m, step, channels, whole, b.first)
		// The kernel stores two columns of a tile; of the last one the second may be outside of the row.
		if whole < b.wide {
			last := b.plain[:4*channels]
			kernel.WinogradOutput(last, 2*channels, m[whole*channels:], step, channels, 1, b.first)
			copy(y[line-channels:line], last)
			copy(y[2*line-channels:2*line], last[2*channels:])
		}
	}
}

// store adds, activates and stores pixels of output channels first to last-1.
func (b *winogradBlock) store(j job, image, first, last int) {
	channels, columns := wholePanels(last-first), b.columns()
	pixels := b.pixels[:b.lines()*columns*channels]
	if j.lastY {
		b.storeLast(j, pixels, image, first, last)
		return
	}
	// The addend, and float16, have channels first.
	later := j.add || j.y.isHalf() // in rows of a channel
	// All pixels in one call, before they are transposed. Sums that a residual is added to are activated after that.
	if j.activate != nil && !later {
		j.activate(pixels)
	}
	y := j.y.from(((image*b.Groups+b.group)*b.OutC + first) * b.OutArea())
	// Full rows of the block's pixels are contiguous in the output, and are stored in one run.
	run, at := len(pixels)/channels, 2*b.row*b.out[1]+2*b.column
	if columns < b.out[1] {
		run = columns
	}
	for ; len(pixels) > 0; pixels, at = pixels[run*channels:], at+b.out[1] {
		if !later {
			kernel.TransposeInto(y.Values[at:], b.OutArea(), pixels, channels, run, last-first)
			continue
		}
		kernel.TransposeInto(b.plain, run, pixels, channels, run, last-first)
		for m := range last - first {
			storeRow(j, y, m*b.OutArea()+at, part(b.plain, m, run))
		}
	}
}

// storeRow adds sums to a row of y, or stores them if it is Float16, and activates it.
func storeRow(j job, y Images[float32], at int, sums []float32) {
	row := sums
	if !y.isHalf() {
		row = y.Values[at:][:len(sums)]
		kernel.Add(row, row, sums)
	}
	if j.activate != nil {
		j.activate(row)
	}
	put(y, at, row)
}

// storeLast is store for channels last.
func (b *winogradBlock) storeLast(j job, pixels []float32, image, first, last int) {
	channels, columns := last-first, b.columns()
	each := func(f func(sums, y []float32)) {
		for i := range len(pixels) / channels {
			at := (image*b.out[0]+2*b.row+i/columns)*b.out[1] + 2*b.column + i%columns
			f(part(pixels, i, channels), j.y.Values[at*b.OutC+first:][:channels])
		}
	}
	if j.add {
		each(func(sums, y []float32) { kernel.Add(sums, sums, y) })
	}
	if j.activate != nil {
		j.activate(pixels)
	}
	each(func(sums, y []float32) { copy(y, sums) })
}
