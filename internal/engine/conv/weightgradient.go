package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A weightGradient is the gradient of a convolution's weights, over two axes: for each group, the product of the
// output's gradient, OutC by positions, with the patches, positions by Depth, summed over the images.
//
// The channels of a patch are far apart in memory, so a chunk of the input is first copied in channels-last order, with
// padding: a row of a patch is then a few contiguous runs. The weights' gradient is computed with channels last too,
// and each row is transposed at the end. Chunks are processed in order, each by all workers.
type weightGradient struct {
	*Geometry
	images, rows int // output rows of a chunk; several images only if whole
	width        int // input columns, padding included
}

// chunkPositions is the number of output positions of a chunk. It affects the result.
const chunkPositions = 1024

// weightGradientOf is nil for more than two axes.
func weightGradientOf(g *Geometry) *weightGradient {
	if len(g.in) > 2 {
		return nil
	}
	if len(g.in) == 1 {
		g = &Geometry{g.asImage(), g.Batch, g.Groups, g.InC, g.OutC}
	}
	c := &weightGradient{Geometry: g, width: (g.out[1]-1)*g.stride[1] + g.span(1)}
	// By the geometry alone and not by the number of workers: the size of a chunk is the order of the sums.
	c.images = min(max(chunkPositions/max(g.OutArea(), 1), 1), g.Batch)
	c.rows = g.out[0]
	if parts := g.OutArea() / chunkPositions; parts > 1 {
		c.rows = ceilDiv(g.out[0], parts)
	}
	return c
}

// lines is the number of input rows that this number of output rows depends on.
func (c *weightGradient) lines(rows int) int { return (rows-1)*c.stride[0] + c.span(0) }

// product is that of a chunk.
func (c *weightGradient) product(images, rows int) gemm.Shape {
	return gemm.Shape{M: c.OutC, N: c.Depth(), K: images * rows * c.out[1]}
}

// direct reports whether the patches are the input itself, of one image: the product packs it anyway.
func (c *weightGradient) direct() bool { return c.Pointwise() && c.images == 1 }

// channelsLast reports whether the result has its channels last and must be transposed.
func (c *weightGradient) channelsLast() bool { return c.InC > 1 && c.kernelSize() > 1 }

// sizes are those of the scratch memory: the input, and the output's gradient of several images.
func (c *weightGradient) sizes() (input, output int) {
	if !c.direct() {
		input = c.images * c.Groups * c.InC * c.lines(c.rows) * c.width
	}
	if c.images > 1 {
		output = c.images * c.Groups * c.OutC * c.OutArea()
	}
	return input, output
}

func (c *weightGradient) work(workers int) int64 {
	input, output := c.sizes()
	size := aligned(4*int64(input)) + aligned(4*int64(output))
	product := int64(0)
	if c.channelsLast() {
		product = int64(workers) * c.row()
	}
	// The last chunk is shorter, and a shorter product may need more scratch memory for its packing.
	for _, images := range []int{c.images, c.Batch % max(c.images, 1)} {
		for _, rows := range []int{c.rows, c.out[0] % max(c.rows, 1)} {
			product = max(product, gemm.FloatWork(c.product(images, rows), c.Groups, workers, false))
		}
	}
	return size + product
}

func (c *weightGradient) run(p *op.Pool, work []byte, dw []float32, x, dy Images[float32]) {
	input, output := c.sizes()
	buf := scratch[float32](work)
	k := &chunk{weightGradient: c, pool: p, x: x, dy: dy, input: buf.take(input), output: buf.take(output), sums: dw}
	k.work = buf
	// In order, as the sums of the chunks are rounded one after the other into dw: results must not depend on the
	// number of workers, who divide each chunk.
	for k.image = 0; k.image < c.Batch; k.image += c.images {
		for k.row = 0; k.row < c.out[0]; k.row += c.rows {
			k.run()
		}
	}
	if c.channelsLast() {
		c.transposeRows(p, buf, dw, c.kernelSize(), c.InC)
	}
}

// row is the size in bytes of a row of the result.
func (c *weightGradient) row() int64 { return aligned(4 * int64(c.Depth())) }

// transposeRows transposes each row of the result, a matrix of that size.
func (c *weightGradient) transposeRows(p *op.Pool, work []byte, dw []float32, rows, cols int) {
	p.Slots(c.Groups*c.OutC, func(m, slot int) {
		row := kernel.Words[float32](work[int64(slot)*c.row():][:c.row()])[:c.Depth()]
		copy(row, part(dw, m, c.Depth()))
		kernel.Transpose(part(dw, m, c.Depth()), row, rows, cols)
	})
}

// A chunk is some output positions whose contributions are summed.
type chunk struct {
	*weightGradient
	pool          *op.Pool
	x, dy         Images[float32]
	input         []float32 // channels, by group, image, row and column
	output        []float32 // by output channel: positions of all images of the chunk
	sums          []float32 // the result
	work          []byte
	image, row    int // the first ones
	images, rows  int // numbers of them
	lines, inside int // rows of the input, and elements of one group
}

func (k *chunk) run() {
	k.images, k.rows = min(k.weightGradient.images, k.Batch-k.image), min(k.weightGradient.rows, k.out[0]-k.row)
	k.lines = k.weightGradient.lines(k.rows)
	k.inside = k.images * k.lines * k.width * k.InC
	if !k.direct() {
		k.copyIn()
	}
	s := k.product(k.images, k.rows)
	products := make([]gemm.FloatProduct, k.Groups)
	for i := range products {
		q := gemm.FloatProduct{C: part(k.sums, i, s.M*s.N), Stride: s.N, Accumulate: k.image > 0 || k.row > 0}
		k.left(&q, i)
		if k.direct() {
			k.right(&q, i)
		} else {
			q.Panels = channelPatchesOf(k, i).fill
		}
		products[i] = q
	}
	gemm.Float(k.pool, s, k.work, products...)
}

// copyIn copies the input, and the output's gradient if there are several images.
func (k *chunk) copyIn() {
	n := k.images * k.Groups
	k.pool.Rows(n*k.lines, 1<<12/(k.width*k.InC)+1, func(from, to int) {
		for i := from; i < to; i++ {
			k.line(i/(k.images*k.lines), i/k.lines%k.images, i%k.lines)
		}
	})
	// Rows of one image's gradient are positions already; those of several images have to be made adjacent.
	if k.weightGradient.images == 1 {
		return
	}
	places := k.OutArea()
	k.pool.Rows(k.Groups*k.OutC, 1<<14/(k.images*places)+1, func(from, to int) {
		for m := from; m < to; m++ {
			row := part(k.output, m, k.images*places)
			for i := range k.images {
				to := part(row, i, places)
				copy(to, read(k.dy, ((k.image+i)*k.Groups*k.OutC+m)*places, places, to))
			}
		}
	})
}

// line copies one row of the input.
func (k *chunk) line(group, image, line int) {
	to := part(k.input, (group*k.images+image)*k.lines+line, k.width*k.InC)
	at := k.row*k.stride[0] - k.begin[0] + line
	// Columns before lo and from hi on are padding: the window may be wider than the image.
	lo, hi := min(max(k.begin[1], 0), k.width), min(max(k.begin[1]+k.in[1], 0), k.width)
	if at < 0 || at >= k.in[0] || lo >= hi {
		clear(to)
		return
	}
	clear(to[:lo*k.InC])
	clear(to[hi*k.InC:])
	from := k.x.from(((k.image+image)*k.Groups+group)*k.InC*k.InArea() + at*k.in[1] + lo - k.begin[1])
	if from.isHalf() {
		kernel.TransposeHalves(to[lo*k.InC:], k.InC, from.Halves, k.InArea(), k.InC, hi-lo)
	} else {
		kernel.TransposeInto(to[lo*k.InC:], k.InC, from.Values, k.InArea(), k.InC, hi-lo)
	}
}

// left sets the left operand of a group's product: the output's gradient.
func (k *chunk) left(q *gemm.FloatProduct, group int) {
	area := k.OutArea()
	from := k.dy.from((k.image*k.Groups+group)*k.OutC*area + k.row*k.out[1])
	switch {
	case k.weightGradient.images > 1:
		n := k.images * area
		q.A = gemm.Rows(part(k.output, group, k.OutC*n), n)
	case from.isHalf():
		q.Rows = func(dst []float32, i0, i1, k0, k1 int) {
			for i := i0; i < i1; i++ {
				kernel.F32FromF16(part(dst, i-i0, k1-k0), from.Halves[i*area+k0:i*area+k1])
			}
		}
	default:
		q.A = gemm.Rows(from.Values, area)
	}
}

// right sets the right operand if the patches are the input itself: its transpose.
func (k *chunk) right(q *gemm.FloatProduct, group int) {
	area := k.InArea()
	from := k.x.from((k.image*k.Groups+group)*k.InC*area + k.row*k.out[1])
	if !from.isHalf() {
		q.B = gemm.Matrix[float32]{Data: from.Values, Row: 1, Col: area}
		return
	}
	q.Panels = func(dst []float32, k0, k1, n0, n1 int) {
		kernel.TransposeHalves(dst, panel, from.Halves[n0*area+k0:], area, n1-n0, k1-k0)
	}
}

// channelPatches are the patches of one group of a chunk.
type channelPatches struct {
	*chunk
	x []float32
}

func channelPatchesOf(k *chunk, group int) channelPatches {
	return channelPatches{k, part(k.input, group, k.inside)}
}

// fill is a gemm.Panels: rows are output positions, columns kernel taps with channels last.
func (p channelPatches) fill(dst []float32, k0, k1, n0, n1 int) {
	// Columns of one tap row are contiguous in the copy, as channels are last, unless the kernel is dilated.
	for n := n0; n < n1; {
		off, run := p.column(n)
		run = min(run, n1-n)
		p.copy(dst, p.x[off:], k0, k1, n-n0, run)
		n += run
	}
}

// column is the offset of column n for the first position, and the number of contiguous columns from there.
func (p channelPatches) column(n int) (off, run int) {
	tap, channel := n/p.InC, n%p.InC
	i, j := tap/p.kernel[1], tap%p.kernel[1]
	off = (i*p.dilation[0]*p.width+j*p.dilation[1])*p.InC + channel
	if p.dilation[1] == 1 {
		return off, (p.kernel[1]-j)*p.InC - channel
	}
	return off, p.InC - channel
}

// copy writes n columns from lane on.
func (p channelPatches) copy(dst, x []float32, k0, k1, lane, n int) {
	wide := p.out[1]
	for k := k0; k < k1; {
		row, column := k/wide, k%wide
		rows := min(wide-column, k1-k)
		line := row/p.rows*p.lines + row%p.rows*p.stride[0]
		from := (line*p.width + column*p.stride[1]) * p.InC
		kernel.PackLanes(dst[(k-k0)*panel:], x[from:], rows, panel, p.stride[1]*p.InC, lane, n, 1, lane > 0)
		k += rows
	}
}
