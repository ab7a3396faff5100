package backward

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// planes are the channels of a tensor: instances × channels × elements of a channel. Those of Float16 are processed one
// at a time, in float32.
type planes struct{ instances, channels, size int }

func planesOf(x *ir.Array) planes {
	return planes{int(x.Shape[0]), int(x.Shape[1]), int(op.Product(x.Shape[2:]))}
}

// channelOf returns channel c of instance i.
func channelOf[T any](p planes, x []T, i, c int) []T { return x[(i*p.channels+c)*p.size:][:p.size] }

// get returns channel c of instance i of a, in buffer if a is Float16.
func get[T number](p planes, a *ir.Array, i, c int, buffer []T) []T {
	if a.DType != ir.Float16 {
		return channelOf(p, ir.View[T](a), i, c)
	}
	kernel.F32FromF16(any(buffer).([]float32), channelOf(p, ir.View[uint16](a), i, c))
	return buffer
}

// target returns the slice to write channel c of instance i of a to: buffer if a is Float16, which put converts.
func target[T number](p planes, a *ir.Array, i, c int, buffer []T) []T {
	if a.DType != ir.Float16 {
		return channelOf(p, ir.View[T](a), i, c)
	}
	return buffer
}

// put stores a channel of output 0.
func put[T number](call *op.Call, p planes, i, c int, y []T) {
	if a := call.Out[0]; a != nil && a.DType == ir.Float16 {
		half.Store(channelOf(p, ir.View[uint16](a), i, c), any(y).([]float32), call.Bool("exceeds", false))
	}
}

// eachPlane calls f for all channels of input 0, of which the last operand is one, and of output 0, of planes q.
func eachPlane[T number](c *op.Call, q planes, f func(i int, y, x []T)) {
	p := planesOf(c.In[0])
	words, each := kernel.Words[T](c.Work), p.stride()+q.stride()
	var xs, ys []T // nil for Float16
	if c.In[0].DType != ir.Float16 {
		xs = ir.View[T](c.In[0])
	}
	if y := c.Out[0]; y != nil && y.DType != ir.Float16 {
		ys = ir.View[T](y)
	}
	n, perTask := p.instances*p.channels, 2*grain/(p.size+q.size+1)+1
	c.Pool.Slots((n+perTask-1)/perTask, func(task, slot int) {
		var from, to []T
		if len(words) > 0 {
			from, to = words[slot*each:][:p.size], words[slot*each+p.stride():][:q.size]
		}
		for at := task * perTask; at < min((task+1)*perTask, n); at++ {
			i, k := at/p.channels, at%p.channels
			x, y := from, to
			if xs != nil {
				x = xs[at*p.size:][:p.size]
			} else {
				get(p, c.In[0], i, k, x)
			}
			if ys != nil {
				y = ys[at*q.size:][:q.size]
			}
			f(at, y, x)
			if ys == nil {
				put(c, q, i, k, y)
			}
		}
	})
}

// eachPlaneWork is the scratch of eachPlane with an output of this shape.
func eachPlaneWork(n *op.Node, x *ir.Array, y []int64, workers int) int64 {
	if x.DType != ir.Float16 && !half.IsStored(n) && n.HasConsumer(0) {
		return 0
	}
	size := max(x.DType.Bits(), ir.Float.Bits()) / 8
	return size * int64(workers*(planesOf(x).stride()+planesOf(&ir.Array{Shape: y}).stride()))
}

// stride is the elements of a plane, rounded up to aligned buffers.
func (p planes) stride() int { return (p.size + 15) / 16 * 16 }

// work is the scratch of n planes with Float16.
func (p planes) work(n int, halves bool) int64 {
	if !halves {
		return 0
	}
	return 4 * int64(n*p.stride())
}

// buffers are those of each worker.
type buffers[T number] struct {
	planes
	each int
	data []T // empty without Float16
	rest []T
}

// buffersOf returns planes for every worker from the scratch, if an input or output is Float16.
func buffersOf[T number](c *op.Call, each int) buffers[T] {
	r := buffers[T]{planes: planesOf(c.In[0]), each: each, rest: kernel.Words[T](c.Work)}
	is := func(a *ir.Array) bool { return a != nil && a.DType == ir.Float16 }
	if slices.ContainsFunc(c.In, is) || slices.ContainsFunc(c.Out, is) {
		n := c.Pool.Workers() * each * r.stride()
		r.data, r.rest = r.rest[:n], r.rest[n:]
	}
	return r
}

// buffer returns buffer i of a worker.
func (r buffers[T]) buffer(slot, i int) []T {
	if len(r.data) == 0 {
		return nil
	}
	return r.data[(slot*r.each+i)*r.stride():][:r.size]
}

// widenHalf returns the inputs with Float instead of Float16.
func widenHalf(in []*ir.Array, which ...int) []*ir.Array {
	out := slices.Clone(in)
	for _, i := range which {
		if a := op.Opt(in, i); a != nil && a.DType == ir.Float16 {
			out[i] = &ir.Array{Kind: a.Kind, DType: ir.Float, Shape: a.Shape}
		}
	}
	return out
}
