package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// planes are the channels of a tensor: instances × channels × elements of a channel. Those of Float16 are computed on one at a
// time, in float32.
type planes struct{ instances, channels, size int }

func planesOf(x *ir.Array) planes {
	return planes{int(x.Shape[0]), int(x.Shape[1]), int(op.Product(x.Shape[2:]))}
}

// of is channel c of instance i.
func of[T any](p planes, x []T, i, c int) []T { return x[(i*p.channels+c)*p.size:][:p.size] }

// get is channel c of instance i of a, in room if a is Float16.
func get[T number](p planes, a *ir.Array, i, c int, room []T) []T {
	if a.DType != ir.Float16 {
		return of(p, ir.View[T](a), i, c)
	}
	kernel.F32FromF16(any(room).([]float32), of(p, ir.View[uint16](a), i, c))
	return room
}

// target is where to write channel c of instance i of a: in room if a is Float16, from which put takes it.
func target[T number](p planes, a *ir.Array, i, c int, room []T) []T {
	if a.DType != ir.Float16 {
		return of(p, ir.View[T](a), i, c)
	}
	return room
}

// put stores a channel of output 0.
func put[T number](call *op.Call, p planes, i, c int, y []T) {
	if a := call.Out[0]; a.DType == ir.Float16 {
		half.Store(of(p, ir.View[uint16](a), i, c), any(y).([]float32), call.Bool("exceeds", false))
	}
}

// room is the elements of a plane, so many that rooms stay aligned.
func (p planes) room() int { return (p.size + 15) / 16 * 16 }

// work is the scratch of so many planes where there are halves.
func (p planes) work(n int, halves bool) int64 {
	if !halves {
		return 0
	}
	return 4 * int64(n*p.room())
}

// rooms are those of each worker.
type rooms[T number] struct {
	planes
	each int
	data []T // empty where nothing is Float16
	rest []T
}

// roomsOf takes each planes for every worker from the scratch, if anything is Float16.
func roomsOf[T number](c *op.Call, each int) rooms[T] {
	r := rooms[T]{planes: planesOf(c.In[0]), each: each, rest: kernel.Words[T](c.Work)}
	is := func(a *ir.Array) bool { return a != nil && a.DType == ir.Float16 }
	if slices.ContainsFunc(c.In, is) || slices.ContainsFunc(c.Out, is) {
		n := c.Pool.Workers() * each * r.room()
		r.data, r.rest = r.rest[:n], r.rest[n:]
	}
	return r
}

// of is room i of a worker.
func (r rooms[T]) of(slot, i int) []T {
	if len(r.data) == 0 {
		return nil
	}
	return r.data[(slot*r.each+i)*r.room():][:r.size]
}

// widened are inputs with Float in the place of Float16 for these.
func widened(in []*ir.Array, which ...int) []*ir.Array {
	out := slices.Clone(in)
	for _, i := range which {
		if a := op.Opt(in, i); a != nil && a.DType == ir.Float16 {
			out[i] = &ir.Array{Kind: a.Kind, DType: ir.Float, Shape: a.Shape}
		}
	}
	return out
}

// isStored reports whether output 0 is Float16.
func isStored(n *op.Node) bool { return slices.Contains(n.Ints("halves"), 0) }

// stored are the outputs as attribute halves has them, which names no other than the first.
func stored(n *op.Node, out []ir.Spec) ([]ir.Spec, error) {
	for _, i := range n.Ints("halves") {
		if i != 0 || out[0].DType != ir.Float {
			return nil, fmt.Errorf("attribute halves: output %d cannot be %s", i, ir.Float16)
		}
		out[0].DType = ir.Float16
	}
	return out, nil
}
