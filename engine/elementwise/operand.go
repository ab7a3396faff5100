package elementwise

import (
	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An operand is an input that is broadcast to the output's shape.
type operand[T ir.Element] struct {
	block.Reader[T]
	whole bool       // it has all of the output's elements
	step  int        // along the runs of the common walk: 0 or 1
	own   block.Walk // its elements alone
}

// shortRun is the length of runs below which operands are first brought into the output's
// order, block by block, so that loops are long.
const shortRun = 32

// A common is the walk that all operands take together.
type common struct{ block.Walk }

func walkOf(out *ir.Array, in ...*ir.Array) common {
	shapes := make([][]int64, len(in))
	for i, a := range in {
		shapes[i] = a.Shape
	}
	return common{block.Broadcast(out.Shape, shapes...)}
}

func operandOf[T ir.Element](w common, i int, out, a *ir.Array) operand[T] {
	return operand[T]{
		Reader: block.Read[T](a),
		whole:  a.Elems() == out.Elems(),
		step:   w.Step(i),
		own:    block.Broadcast(out.Shape, a.Shape),
	}
}

// blocks calls f for stretches of at most block.Len positions, where off says at which
// element each operand begins; a nil off says that they have to be put in order.
func (w common) blocks(from, to int, f func(at, n int, off []int)) {
	if w.Inner() < shortRun && w.Size() > w.Inner() {
		for at := from; at < to; at += block.Len {
			f(at, min(block.Len, to-at), nil)
		}
		return
	}
	shifted := make([]int, w.Operands())
	w.Runs(from, to, func(at, n int, off []int) {
		for i := 0; i < n; i += block.Len {
			for k := range off {
				shifted[k] = off[k] + i*w.Step(k)
			}
			f(at+i, min(block.Len, n-i), shifted)
		}
	})
}

// at is the operand's part in the n positions from at on: one element where that is all.
func (o *operand[T]) at(at, n, i int, off []int, buf []T) []T {
	switch {
	case o.whole:
		return o.Block(buf, at, n)
	case off == nil:
		o.order(buf, at, n)
		return buf[:n]
	case o.step == 0:
		return o.Block(buf, off[i], 1)
	}
	return o.Block(buf, off[i], n)
}

// order puts the operand's elements at n positions into dst.
func (o *operand[T]) order(dst []T, from, n int) {
	o.own.Runs(from, from+n, func(at, n int, off []int) {
		part := dst[at-from : at-from+n]
		if o.own.Step(0) == 0 {
			fill(part, o.One(off[0]))
		} else {
			copy(part, o.Block(part, off[0], n))
		}
	})
}

// repeated is x as n elements: x itself if it has them, else its only one in buf.
func repeated[T any](x, buf []T, n int) []T {
	if len(x) == n {
		return x
	}
	fill(buf[:n], x[0])
	return buf[:n]
}

func fill[T any](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}

// rows are the loops of a binary operator. Those with a single number may be
// missing. dst may be a or b.
type rows[T, D ir.Element] struct {
	vv func(dst []D, a, b []T)
	vs func(dst []D, a []T, b T)
	sv func(dst []D, a T, b []T)
}

// do computes a block. A single element of an operand is put into its buffer if need be.
func (f rows[T, D]) do(dst []D, a, b, bufA, bufB []T) {
	n := len(dst)
	switch {
	case f.vs != nil && len(a) == n && len(b) == 1:
		f.vs(dst, a, b[0])
	case f.sv != nil && len(b) == n && len(a) == 1:
		f.sv(dst, a[0], b)
	default:
		f.vv(dst, repeated(a, bufA, n), repeated(b, bufB, n))
	}
}

// zip computes output 0 from x and y.
func zip[T, D ir.Element](c *op.Call, x, y *ir.Array, f rows[T, D]) error {
	dst := c.Out[0]
	w := walkOf(dst, x, y)
	a, b := operandOf[T](w, 0, dst, x), operandOf[T](w, 1, dst, y)
	out := block.Write[D](dst)
	block.Share(c, w.Size(), block.Grain, zipBytes, func(s block.Scratch, from, to int) {
		bufA, bufB, buf := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len), block.Take[D](&s, block.Len)
		w.blocks(from, to, func(at, n int, off []int) {
			z := out.Block(buf, at, n)
			f.do(z, a.at(at, n, 0, off, bufA), b.at(at, n, 1, off, bufB), bufA, bufB)
			out.Done(at, z)
		})
	})
	return nil
}

// zipBytes is the scratch of a worker with three blocks of the widest elements.
const zipBytes = 3 * 8 * block.Len

func zipWork(_ *op.Node, _ []*ir.Array, workers int) int64 { return int64(workers) * zipBytes }
