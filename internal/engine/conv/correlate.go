package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A correlation is the gradient of a convolution's weights, over two axes: for each group, the product of the
// output's gradient, OutC by places, with the patches, places by Depth, summed over the images.
//
// The patches' channels would lie far apart, so a chunk of the input is first laid down with its channels side by side, and
// with its padding: a row of a patch is then a few runs of neighbours. So the weights' gradient comes out with its channels
// last, and each row is turned in the end. Chunks follow one another; workers share each.
type correlation struct {
	*Geometry
	images, rows int // of the output in a chunk; several images only if whole
	width        int // places of a row of the input, padding included
}

// correlatedAtOnce is the places of the output in a chunk. It is part of what the result is.
const correlatedAtOnce = 1024

// correlationOf is nil where there are more than two axes.
func correlationOf(g *Geometry) *correlation {
	if len(g.in) > 2 {
		return nil
	}
	if len(g.in) == 1 {
		g = &Geometry{g.asImage(), g.Batch, g.Groups, g.InC, g.OutC}
	}
	c := &correlation{Geometry: g, width: (g.out[1]-1)*g.stride[1] + g.span(1)}
	c.images = min(max(correlatedAtOnce/max(g.Places(), 1), 1), g.Batch)
	c.rows = g.out[0]
	if parts := g.Places() / correlatedAtOnce; parts > 1 {
		c.rows = ceilDiv(g.out[0], parts)
	}
	return c
}

// lines are the rows of the input that so many rows of the output need.
func (c *correlation) lines(rows int) int { return (rows-1)*c.stride[0] + c.span(0) }

// product is that of a chunk.
func (c *correlation) product(images, rows int) gemm.Shape {
	return gemm.Shape{M: c.OutC, N: c.Depth(), K: images * rows * c.out[1]}
}

// direct reports whether the patches are the input itself, of one image: the product packs it as well.
func (c *correlation) direct() bool { return c.Pointwise() && c.images == 1 }

// turned reports whether the result has to be turned: its channels come last.
func (c *correlation) turned() bool { return c.InC > 1 && c.taken() > 1 }

// sizes of the scratch: the input, and the output's gradient of several images.
func (c *correlation) sizes() (input, output int) {
	if !c.direct() {
		input = c.images * c.Groups * c.InC * c.lines(c.rows) * c.width
	}
	if c.images > 1 {
		output = c.images * c.Groups * c.OutC * c.Places()
	}
	return input, output
}

func (c *correlation) work(workers int) int64 {
	input, output := c.sizes()
	size := aligned(4*int64(input)) + aligned(4*int64(output))
	product := int64(0)
	if c.turned() {
		product = int64(workers) * c.row()
	}
	for _, images := range []int{c.images, c.Batch % max(c.images, 1)} {
		for _, rows := range []int{c.rows, c.out[0] % max(c.rows, 1)} {
			product = max(product, gemm.FloatWork(c.product(images, rows), c.Groups, workers, false))
		}
	}
	return size + product
}

// run writes dw, or adds to it, which is turned back for that first.
func (c *correlation) run(p *op.Pool, work []byte, dw, x, dy []float32, add bool) {
	input, output := c.sizes()
	room := scratch[float32](work)
	k := &chunk{correlation: c, pool: p, x: x, dy: dy, input: room.take(input), output: room.take(output), sums: dw, add: add}
	k.work = room
	if add && c.turned() {
		c.turn(p, room, dw, c.InC, c.taken())
	}
	for k.image = 0; k.image < c.Batch; k.image += c.images {
		for k.row = 0; k.row < c.out[0]; k.row += c.rows {
			k.run()
		}
	}
	if c.turned() {
		c.turn(p, room, dw, c.taken(), c.InC)
	}
}

// row is the bytes of a row of the result.
func (c *correlation) row() int64 { return aligned(4 * int64(c.Depth())) }

// turn transposes each row of the result, a matrix of that size.
func (c *correlation) turn(p *op.Pool, work []byte, dw []float32, rows, cols int) {
	p.Slots(c.Groups*c.OutC, func(m, slot int) {
		row := kernel.Words[float32](work[int64(slot)*c.row():][:c.row()])[:c.Depth()]
		copy(row, part(dw, m, c.Depth()))
		kernel.Transpose(part(dw, m, c.Depth()), row, rows, cols)
	})
}

// A chunk is some places of the output while they are summed.
type chunk struct {
	*correlation
	pool          *op.Pool
	x, dy         []float32
	input         []float32 // by group, image, row and column: the channels
	output        []float32 // by output channel: places of all images of the chunk
	sums          []float32
	add           bool // to what sums are
	work          []byte
	image, row    int // the first ones
	images, rows  int // how many
	lines, inside int // rows of the input, and elements of one group
}

func (k *chunk) run() {
	k.images, k.rows = min(k.correlation.images, k.Batch-k.image), min(k.correlation.rows, k.out[0]-k.row)
	k.lines = k.correlation.lines(k.rows)
	k.inside = k.images * k.lines * k.width * k.InC
	if !k.direct() {
		k.lay()
	}
	s := k.product(k.images, k.rows)
	products := make([]gemm.FloatProduct, k.Groups)
	for i := range products {
		products[i] = gemm.FloatProduct{
			A: k.left(i), C: part(k.sums, i, s.M*s.N), Stride: s.N, Accumulate: k.add || k.image > 0 || k.row > 0,
		}
		if k.direct() {
			x := Input(k.Geometry, k.x, k.image*k.Groups+i)[k.row*k.out[1]:]
			products[i].B = gemm.Matrix[float32]{Data: x, Row: 1, Col: k.Area()}
		} else {
			products[i].Panels = channelPatchesOf(k, i).fill
		}
	}
	gemm.Float(k.pool, s, k.work, products...)
}

// lay copies the input, and the output's gradient if there are several images.
func (k *chunk) lay() {
	n := k.images * k.Groups
	k.pool.Rows(n*k.lines, 1<<12/(k.width*k.InC)+1, func(from, to int) {
		for i := from; i < to; i++ {
			k.line(i/(k.images*k.lines), i/k.lines%k.images, i%k.lines)
		}
	})
	if k.correlation.images == 1 {
		return
	}
	places := k.Places()
	k.pool.Rows(k.Groups*k.OutC, 1<<14/(k.images*places)+1, func(from, to int) {
		for m := from; m < to; m++ {
			row := part(k.output, m, k.images*places)
			for i := range k.images {
				copy(part(row, i, places), part(k.dy, (k.image+i)*k.Groups*k.OutC+m, places))
			}
		}
	})
}

// line lays down one row of the input.
func (k *chunk) line(group, image, line int) {
	to := part(k.input, (group*k.images+image)*k.lines+line, k.width*k.InC)
	at := k.row*k.stride[0] - k.begin[0] + line
	lo, hi := min(max(k.begin[1], 0), k.width), min(max(k.begin[1]+k.in[1], 0), k.width)
	if at < 0 || at >= k.in[0] || lo >= hi {
		clear(to)
		return
	}
	clear(to[:lo*k.InC])
	clear(to[hi*k.InC:])
	channels := Input(k.Geometry, k.x, (k.image+image)*k.Groups+group)
	kernel.TransposeInto(to[lo*k.InC:], k.InC, channels[at*k.in[1]+lo-k.begin[1]:], k.Area(), k.InC, hi-lo)
}

// left is the output's gradient for one group.
func (k *chunk) left(group int) gemm.Matrix[float32] {
	if k.correlation.images > 1 {
		n := k.images * k.Places()
		return gemm.Rows(part(k.output, group, k.OutC*n), n)
	}
	return gemm.Rows(Output(k.Geometry, k.dy, k.image*k.Groups+group)[k.row*k.out[1]:], k.Places())
}

// channelPatches are the patches of one group of a chunk.
type channelPatches struct {
	*chunk
	x []float32
}

func channelPatchesOf(k *chunk, group int) channelPatches {
	return channelPatches{k, part(k.input, group, k.inside)}
}

// fill is a gemm.Panels: rows are places of the output, columns the kernel's, channels last.
func (p channelPatches) fill(dst []float32, k0, k1, n0, n1 int) {
	for n := n0; n < n1; {
		off, run := p.column(n)
		run = min(run, n1-n)
		p.copy(dst, p.x[off:], k0, k1, n-n0, run)
		n += run
	}
}

// column is where column n lies for the first place, and how many lie side by side from there.
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
