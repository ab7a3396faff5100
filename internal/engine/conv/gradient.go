package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// The gradients of a convolution, y = x ⋆ w. Float has fast forms, Double plain loops, for checks by finite
// differences. The functions ending in Work return the sizes of scratch memory, which need not be cleared.

// TransposedGeometryOf is that of the convolution that a ConvTranspose transposes, from the shapes of its inputs X and
// W: X is the convolution's output, Y its input.
func TransposedGeometryOf(n *op.Node, x, w *ir.Array) (*Geometry, error) {
	return transposedGeometry(n, []*ir.Array{x, w})
}

// InShape is the shape of the input: (N, C, D1, D2, …).
func (g *Geometry) InShape() []int64 {
	shape := []int64{int64(g.Batch), int64(g.Groups * g.InC)}
	for _, d := range g.in {
		shape = append(shape, int64(d))
	}
	return shape
}

// ConvolveWork is the size of Convolve's scratch memory.
func (g *Geometry) ConvolveWork(workers int, h Halves) int64 { return g.computedWork(workers, h) }

// Convolve writes y.
func Convolve[T float](g *Geometry, p *op.Pool, work []byte, y, x Images[T], w []T) {
	if y.len() == 0 {
		return
	}
	if y, ok := any(y).(Images[float32]); ok {
		g.computed()(p, work, job{x: any(x).(Images[float32]), w: any(w).([]float32), y: y})
		return
	}
	p.For(g.Products(), func(i int) {
		for m := range g.OutC {
			row := part(Output(g, y.Values, i), m, g.OutArea())
			clear(row)
			addWindows(g, row, Input(g, x.Values, i), part(Weights(g, w, i), m, g.Depth()), axpy[T])
		}
	})
}

// InputGradientWork is the size of InputGradient's scratch memory; turned means that memory for transposed weights is
// passed separately.
func (g *Geometry) InputGradientWork(workers int, turned bool, h Halves) int64 {
	return adjointOf(g).work(workers, turned, h)
}

// InputGradient writes dx, the transpose of the convolution applied to dy. turned is memory of w's size, or nil.
func InputGradient[T float](g *Geometry, p *op.Pool, work []byte, dx, dy Images[T], w, turned []T) {
	if dx.len() == 0 {
		return
	}
	if dy.len() == 0 || len(w) == 0 {
		// No position contributes; the memory of an output has old values.
		clear(dx.Values)
		clear(dx.Halves)
		return
	}
	if dx, ok := any(dx).(Images[float32]); ok {
		adjointOf(g).run(p, work, dx, any(dy).(Images[float32]), any(w).([]float32), any(turned).([]float32))
		return
	}
	p.For(g.Batch*g.Groups*g.InC, func(i int) {
		plainInputGradient(g, part(dx.Values, i, g.inLen()), Output(g, dy.Values, i/g.InC),
			Weights(g, w, i/g.InC)[i%g.InC*g.kernelSize():])
	})
}

// plainInputGradient computes one channel.
func plainInputGradient[T float](g *Geometry, dx, dy, w []T) {
	clear(dx)
	g.eachTap(func(tap, out, in, n, stride int) {
		for m := range g.OutC {
			v, row := w[m*g.Depth()+tap], part(dy, m, g.OutArea())[out:]
			for i := range n {
				dx[in+i*stride] += T(v * row[i])
			}
		}
	})
}

// eachTap calls f for each kernel tap and each row of the output: n elements from out on correspond to those of a
// channel of the input from in on, stride apart.
func (g *Geometry) eachTap(f func(tap, out, in, n, stride int)) {
	var rows []coveredRow
	last := g.last()
	for o := range g.OutArea() / max(g.out[last], 1) {
		rows = g.rows(rows, o)
		for _, r := range rows {
			for k := range g.kernel[last] {
				if lo, hi, from := g.taps(last, k); lo < hi {
					f(r.tap*g.kernel[last]+k, o*g.out[last]+lo, r.off+from, hi-lo, g.stride[last])
				}
			}
		}
	}
}

// WeightGradientWork is the size of WeightGradient's scratch memory.
func (g *Geometry) WeightGradientWork(workers int, h Halves) int64 {
	if d := depthwiseGradientOf(g); d != nil {
		return d.work(workers, h)
	}
	if c := weightGradientOf(g); c != nil {
		return c.work(workers)
	}
	return g.imageWork(h)
}

// imageWork is the size of an image in float32, and of its output's gradient, if they are Float16.
func (g *Geometry) imageWork(h Halves) (size int64) {
	if h.X {
		size += aligned(4 * int64(g.Groups*g.InC*g.InArea()))
	}
	if h.Y {
		size += aligned(4 * int64(g.Groups*g.OutC*g.OutArea()))
	}
	return size
}

// WeightGradient writes dw, summed over images and positions in an order that depends on the geometry alone.
func WeightGradient[T float](g *Geometry, p *op.Pool, work []byte, dw []T, x, dy Images[T]) {
	clear(dw)
	if dy.len() == 0 || x.len() == 0 || len(dw) == 0 {
		return
	}
	if dw, ok := any(dw).([]float32); ok && len(g.in) <= 2 {
		x, dy := any(x).(Images[float32]), any(dy).(Images[float32])
		if d := depthwiseGradientOf(g); d != nil {
			d.run(p, work, dw, x, dy)
		} else {
			weightGradientOf(g).run(p, work, dw, x, dy)
		}
		return
	}
	// One image at a time, also if there are workers for more: the order of the sums must not depend on them, and a
	// Float16 image then needs memory for one in float32 only.
	one, buf := *g, scratch[T](work)
	one.Batch = 1
	in, out := x.image(&buf, g.Groups*g.InC*g.InArea()), dy.image(&buf, g.Groups*g.OutC*g.OutArea())
	for image := range g.Batch {
		x, dy := in(image), out(image)
		p.For(g.Groups*g.OutC, func(m int) { plainWeightGradient(&one, part(dw, m, g.Depth()), m, x, dy) })
	}
}

// image returns the elements of an image of n elements, in memory from buf if they are Float16.
func (m Images[T]) image(buf *scratch[T], n int) func(i int) []T {
	if !m.isHalf() {
		return func(i int) []T { return part(m.Values, i, n) }
	}
	to := buf.take(n)
	return func(i int) []T {
		kernel.F32FromF16(any(to).([]float32), m.Halves[i*n:][:n])
		return to
	}
}

// plainWeightGradient adds to the weights of channel m of the output.
func plainWeightGradient[T float](g *Geometry, dw []T, m int, x, dy []T) {
	for image := range g.Batch {
		in := Input(g, x, image*g.Groups+m/g.OutC)
		out := part(dy, image*g.Groups*g.OutC+m, g.OutArea())
		for c := range g.InC {
			to, from := part(dw, c, g.kernelSize()), part(in, c, g.inLen())
			g.eachTap(func(tap, o, i, n, stride int) {
				sum := T(0)
				for k, v := range out[o:][:n] {
					sum += T(v * from[i+k*stride])
				}
				to[tap] += sum
			})
		}
	}
}
