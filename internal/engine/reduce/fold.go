package reduce

import (
	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A fold reduces elements of type T to one, with an accumulator of type A.
type fold[T ir.Element, A any] struct {
	zero A                    // of no elements
	row  func(acc A, x []T) A // adds contiguous elements
	cols func(acc []A, x []T) // adds x[i] to acc[i]
	join func(a, b A) A       // of two parts
	done func(acc A, n int) T // of n elements
}

// A layout assigns the elements of a tensor to outputs. Contiguous elements are either reduced to one output, or each
// belongs to another one of contiguous outputs.
type layout struct {
	kept, folded block.Walk
	outputs, n   int  // outputs, and elements per output
	inner        int  // number of contiguous outputs: 1 if contiguous elements are reduced
	rows         bool // the elements of an output are contiguous, and so are those of successive outputs
	width        int  // outputs per unit of work
	parts        int  // parts that the elements of one output are split into
}

// colBlock is the number of outputs that are computed together.
const colBlock = 512

// Few units of work are split into parts, so that all workers are used. The numbers are constants, so that the order of
// additions does not depend on the number of workers.
const (
	fewUnits = 16
	maxParts = 64 // of all units
	partSize = 32 << 10
)

func layoutOf(shape []int64, reduced []bool) layout {
	steps := op.Strides(shape)
	var dims, strides [2][]int // kept, folded
	inner := 1
	for i, d := range shape {
		k := 0
		if reduced[i] {
			k = 1
		}
		dims[k] = append(dims[k], int(d))
		strides[k] = append(strides[k], int(steps[i]))
		// Axes of size 1 change no order: the innermost of the others decides whether contiguous elements belong to one
		// output.
		switch {
		case d == 1:
		case reduced[i]:
			inner = 1
		default:
			inner *= int(d)
		}
	}
	l := layout{kept: block.Strided(dims[0], strides[0]), folded: block.Strided(dims[1], strides[1]), inner: inner}
	l.outputs, l.n = l.kept.Size(), l.folded.Size()
	l.rows = inner == 1 && l.kept.Inner() == l.outputs && l.folded.Inner() == l.n
	l.width, l.parts = max(min(inner, colBlock), 1), 1
	if u := l.units(); 0 < u && u < fewUnits {
		l.parts = max(1, min(maxParts/u, l.n*l.width/partSize))
	}
	return l
}

// units is the number of units of work: each is width contiguous outputs, or the rest of inner.
func (l layout) units() int {
	if l.outputs == 0 {
		return 0
	}
	return l.outputs / l.inner * l.rowUnits()
}

func (l layout) rowUnits() int { return (l.inner + l.width - 1) / l.width }

// unit is the range of outputs of a unit, and the offset of their first elements.
func (l layout) unit(u int) (out, count, base int) {
	first := u % l.rowUnits() * l.width
	out = u/l.rowUnits()*l.inner + first
	return out, min(l.width, l.inner-first), l.kept.Offset(0, out)
}

// foldBytes is the scratch memory of a worker: a block of elements, accumulators and outputs.
const foldBytes = 8*block.Len + (16+8)*colBlock // scaledSum is the widest accumulator

func (l layout) work(workers int) int64 {
	size := int64(workers) * foldBytes
	if l.parts > 1 {
		size += block.Bytes[scaledSum](l.units() * l.parts * l.width)
	}
	return size
}

// A tensorFold is a fold applied to a tensor.
type tensorFold[T ir.Element, A any] struct {
	fold[T, A]
	layout
	in  block.Loader[T]
	out block.Writer[T]
}

// run computes output 0 from x.
func run[T ir.Element, A any](c *op.Call, l layout, x *ir.Array, f fold[T, A]) error {
	r := &tensorFold[T, A]{f, l, block.Read[T](x), block.Write[T](c.Out[0])}
	if l.parts > 1 {
		r.inParts(c)
		return nil
	}
	grain := block.Grain / max(l.n*l.width, 1)
	if x := r.in.Direct(); l.rows && x != nil && r.out.Direct() != nil {
		r.inRows(c, grain, x, r.out.Direct())
		return nil
	}
	block.Parallel(c, l.units(), grain, foldBytes, func(s block.Scratch, from, to int) {
		buf, acc, y := block.Take[T](&s, block.Len), block.Take[A](&s, l.width), block.Take[T](&s, l.width)
		for u := from; u < to; u++ {
			out, count, base := l.unit(u)
			r.gather(acc[:count], base, 0, l.n, buf)
			r.finish(out, acc[:count], y)
		}
	})
	return nil
}

// inRows reduces rows to one output each.
func (r *tensorFold[T, A]) inRows(c *op.Call, grain int, x, y []T) {
	block.Parallel(c, r.outputs, grain, 0, func(_ block.Scratch, from, to int) {
		for i := from; i < to; i++ {
			acc, row := r.zero, x[i*r.n:][:r.n]
			// Blocks as in along, so that the order of additions is that of types that are converted.
			for len(row) > block.Len {
				acc, row = r.row(acc, row[:block.Len]), row[block.Len:]
			}
			y[i] = r.done(r.row(acc, row), r.n)
		}
	})
}

// inParts reduces parts of the elements first, and then joins them in order.
func (r *tensorFold[T, A]) inParts(c *op.Call) {
	spare := block.Scratch{Free: c.Work[c.Pool.Workers()*foldBytes:]}
	all := block.Take[A](&spare, r.units()*r.parts*r.width)
	block.Parallel(c, r.units()*r.parts, 1, foldBytes, func(s block.Scratch, from, to int) {
		buf := block.Take[T](&s, block.Len)
		for i := from; i < to; i++ {
			_, count, base := r.unit(i / r.parts)
			p := i % r.parts
			r.gather(all[i*r.width:][:count], base, p*r.n/r.parts, (p+1)*r.n/r.parts, buf)
		}
	})
	// Parts are joined in their order, by one goroutine: the sum must not depend on which worker is done first.
	y := make([]T, r.width)
	for u := range r.units() {
		out, count, _ := r.unit(u)
		acc := all[u*r.parts*r.width:]
		for p := 1; p < r.parts; p++ {
			for i, a := range acc[p*r.width:][:count] {
				acc[i] = r.join(acc[i], a)
			}
		}
		r.finish(out, acc[:count], y)
	}
}

// gather reduces elements from..to of contiguous outputs.
func (r *tensorFold[T, A]) gather(acc []A, base, from, to int, buf []T) {
	block.Fill(acc, r.zero)
	if r.inner == 1 && r.folded.Inner() == r.n && r.folded.Step(0) == 1 {
		acc[0] = r.along(acc[0], base+from, to-from, buf) // without Runs, which allocates
		return
	}
	step := r.folded.Step(0)
	r.folded.Runs(from, to, func(_, n int, off []int) {
		if r.inner == 1 && step == 1 {
			acc[0] = r.along(acc[0], base+off[0], n, buf)
			return
		}
		for i := range n {
			r.cols(acc, r.in.Block(buf, base+off[0]+i*step, len(acc)))
		}
	})
}

// along reduces n contiguous elements.
func (r *tensorFold[T, A]) along(acc A, at, n int, buf []T) A {
	for ; n > block.Len; n -= block.Len {
		acc = r.row(acc, r.in.Block(buf, at, block.Len))
		at += block.Len
	}
	return r.row(acc, r.in.Block(buf, at, n))
}

func (r *tensorFold[T, A]) finish(out int, acc []A, buf []T) {
	y := r.out.Block(buf, out, len(acc))
	for i, a := range acc {
		y[i] = r.done(a, r.n)
	}
	r.out.Done(out, y)
}
