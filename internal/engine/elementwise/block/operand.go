package block

import "github.com/mcompress/mcompress/ir"

// An Operand is an input that is broadcast to an output's shape.
type Operand[T ir.Element] struct {
	Loader[T]
	whole  bool // it has all of the output's elements
	single bool // it has one element
	i      int  // index in the walk of all operands
	step   int  // along that walk's runs: 0 or 1
	own    Walk // the walk over its elements alone, if it is neither whole nor single
}

// shortRun is the length of runs below which operands are first copied to the output's order, block by block, so that
// loops are long.
const shortRun = 32

// Together returns the walk of inputs that broadcast to out, for Blocks alone. Graphs have many small tensors, for
// which finding runs takes longer than the work: if out is one block there are none, and each operand is ordered
// separately.
func Together(out *ir.Array, in ...*ir.Array) Walk {
	if n := out.Elems(); n <= Len {
		return Walk{dims: []int{int(n)}}
	}
	shapes := make([][]int64, len(in))
	for i, a := range in {
		shapes[i] = a.Shape
	}
	return Broadcast(out.Shape, shapes...)
}

// OperandOf returns a, which is operand i of the walk w to out.
func OperandOf[T ir.Element](w Walk, i int, out, a *ir.Array) Operand[T] {
	o := Operand[T]{
		Loader: Read[T](a),
		whole:  a.Elems() == out.Elems(),
		single: a.Elems() == 1,
		i:      i,
	}
	if w.steps != nil {
		o.step = w.Step(i)
	}
	if !o.whole && !o.single {
		o.own = Broadcast(out.Shape, a.Shape)
	}
	return o
}

// Blocks calls f for ranges of at most Len positions; Operand.At returns each operand's part, given off.
func (w Walk) Blocks(from, to int, f func(at, n int, off []int)) {
	// No offsets: operands order their elements themselves, which makes long loops of short runs.
	if w.steps == nil || w.Inner() < shortRun && w.Size() > w.Inner() {
		for at := from; at < to; at += Len {
			f(at, min(Len, to-at), nil)
		}
		return
	}
	shifted := make([]int, len(w.steps))
	w.Runs(from, to, func(at, n int, off []int) {
		for i := 0; i < n; i += Len {
			for k := range off {
				shifted[k] = off[k] + i*w.Step(k)
			}
			f(at+i, min(Len, n-i), shifted)
		}
	})
}

// At is the operand's part of a range of Blocks: n elements, or one for a scalar. buf has space for n.
func (o *Operand[T]) At(at, n int, off []int, buf []T) []T {
	switch {
	case o.single:
		return o.Block(buf, 0, 1)
	case o.whole || off == nil:
		return o.Ordered(at, n, buf)
	case o.step == 0:
		return o.Block(buf, off[o.i], 1)
	}
	return o.Block(buf, off[o.i], n)
}

// Ordered is the operand's elements at n positions from at on. buf has space for them.
func (o *Operand[T]) Ordered(from, n int, buf []T) []T {
	switch {
	case o.whole:
		return o.Block(buf, from, n)
	case o.single:
		Fill(buf[:n], o.One(0))
		return buf[:n]
	}
	if len(o.own.dims) == 2 {
		if o.own.Step(0) == 1 {
			o.tile(buf[:n], from)
		} else {
			o.stretch(buf[:n], from)
		}
		return buf[:n]
	}
	o.own.Runs(from, from+n, func(at, n int, off []int) {
		part := buf[at-from : at-from+n]
		if o.own.Step(0) == 0 {
			Fill(part, o.One(off[0]))
		} else {
			copy(part, o.Block(part, off[0], n))
		}
	})
	return buf[:n]
}

// tile is Ordered for an operand that is repeated as a whole, in few large copies.
func (o *Operand[T]) tile(dst []T, from int) {
	// Once through the operand, from the phase of from on; after that, dst repeats its own start.
	period := o.own.dims[1]
	done := 0
	for done < len(dst) && done < period {
		at := (from + done) % period
		n := min(period-at, len(dst)-done, period-done)
		done += copy(dst[done:], o.Block(dst[done:], at, n))
	}
	for done < len(dst) {
		done += copy(dst[done:], dst[:done])
	}
}

// stretch is Ordered for an operand of which each element is repeated. The elements are read into the end of dst: each
// is there until its repetitions are written, as at least one position is left for each element after it.
func (o *Operand[T]) stretch(dst []T, from int) {
	if len(dst) == 0 {
		return
	}
	times := o.own.dims[1]
	first := from / times
	n := (from+len(dst)-1)/times - first + 1
	next := times - from%times // the end of the repetitions of an element
	for _, v := range o.Block(dst[len(dst)-n:], first, n) {
		end := min(next, len(dst))
		Fill(dst[max(0, next-times):end], v)
		next += times
	}
}

// Repeated is x as n elements: x itself if it has them, else its only one repeated in buf.
func Repeated[T any](x, buf []T, n int) []T {
	if len(x) == n {
		return x
	}
	Fill(buf[:n], x[0])
	return buf[:n]
}

// Fill sets all elements of x to v.
func Fill[T any](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}
