package half

import (
	"errors"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

const (
	elementsAtOnce = 8 << 10 // of elementwise operators
	bytesAtOnce    = 1 << 19 // of images in float32, which stay in the L2 cache
)

// chunks is a node that is split into chunks of its images or of its elements.
type chunks struct {
	*kind
	op          *op.Op
	node        *op.Node
	in          []*ir.Array
	out         []*ir.Array
	chunkedIn   []bool
	chunkedOut  []bool
	flat        bool
	n, perChunk int // images or elements, in all and per chunk
}

// chunks splits a node. The result depends on shapes and types alone, and so do the node's outputs.
func (k *kind) chunks(n *op.Node, in []*ir.Array) (*chunks, error) {
	o, node, err := k.inner(n)
	if err != nil {
		return nil, err
	}
	specs, err := k.shape(n, in)
	if err != nil {
		return nil, err
	}
	c := &chunks{kind: k, op: o, node: node, in: in, flat: k.flat}
	y := specs[0].Shape
	for i, a := range in {
		c.chunkedIn = append(c.chunkedIn, a != nil && slices.Contains(k.In, i) && k.Fits(a.Shape, y))
		c.flat = c.flat && (!slices.Contains(k.In, i) || a != nil && slices.Equal(a.Shape, y))
	}
	for i, s := range specs {
		c.out = append(c.out, &ir.Array{DType: s.DType, Shape: s.Shape})
		c.chunkedOut = append(c.chunkedOut, slices.Contains(k.Out, i))
	}
	c.n = int(y[0])
	if c.flat {
		c.n, c.perChunk = int(op.Product(y)), elementsAtOnce
		return c, nil
	}
	c.perChunk = max(c.n, 1)
	if each := c.wide(1); each > 0 {
		c.perChunk = min(max(int(bytesAtOnce/each), 1), c.perChunk)
	}
	return c, nil
}

// wide is the size in bytes of the float32 values of a chunk of n.
func (c *chunks) wide(n int) (bytes int64) {
	for i, a := range c.in {
		if c.chunkedIn[i] && a.DType == ir.Float16 {
			bytes += aligned(4 * c.elems(a, n))
		}
	}
	for i, a := range c.out {
		if c.chunkedOut[i] && a.DType == ir.Float16 && c.node.HasConsumer(i) {
			bytes += aligned(4 * c.elems(a, n))
		}
	}
	return bytes
}

// elems is the number of elements of a in n images or elements.
func (c *chunks) elems(a *ir.Array, n int) int64 { return a.Elems() / int64(max(c.n, 1)) * int64(n) }

// piece is the view of images or elements from to end-1 of a, with as much of Data as there is.
func (c *chunks) piece(a *ir.Array, from, end int) *ir.Array {
	p := &ir.Array{DType: a.DType, Shape: []int64{int64(end - from)}}
	if !c.flat {
		p.Shape = append(p.Shape, a.Shape[1:]...)
	}
	if a.Data != nil {
		size := a.DType.Bits() / 8
		p.Data = a.Data[c.elems(a, from)*size : c.elems(a, end)*size]
	}
	return p
}

func (c *chunks) parts() int { return (c.n + c.perChunk - 1) / c.perChunk }

// work is the scratch memory of a worker's chunk if chunks are shared out, else that of the whole node.
func (c *chunks) work(workers int) int64 {
	if c.inBlocks() != nil {
		return int64(workers) * blocksWork
	}
	most := int64(0)
	// The last chunk is smaller, and its scratch memory may still be larger: operators choose by shapes.
	for _, n := range []int{min(c.perChunk, c.n), c.n % c.perChunk} {
		size := c.wide(n)
		if c.op.Work != nil {
			size += aligned(c.op.Work(c.node, c.inputs(0, n, nil), workers))
		}
		most = max(most, size)
	}
	// Elements are independent, so workers have chunks of their own; chunks of images are computed one by one by all
	// workers.
	if c.flat {
		return most * int64(workers)
	}
	return most
}

// inputs are those of a chunk, with wide as memory for Float16 ones, or without data.
func (c *chunks) inputs(from, end int, wide func(*ir.Array) *ir.Array) []*ir.Array {
	in := slices.Clone(c.in)
	for i, a := range in {
		if !c.chunkedIn[i] {
			continue
		}
		in[i] = c.piece(a, from, end)
		if a.DType != ir.Float16 {
			continue
		}
		if wide == nil {
			in[i] = &ir.Array{DType: ir.Float, Shape: in[i].Shape}
		} else {
			in[i] = wide(in[i])
		}
	}
	return in
}

// inBlocks is the function of an operator that is computed in blocks, else nil.
func (c *chunks) inBlocks() func(y []float32, in [2][]float32) {
	if !c.flat {
		return nil
	}
	return elementwise[c.typ]
}

func (c *chunks) run(call *op.Call) error {
	c.in = call.In
	// Elementwise: a block in the cache is widened, computed and narrowed in one pass.
	if f := c.inBlocks(); f != nil {
		inBlocks(call, c.n, f)
		return nil
	}
	errs := make([]error, c.parts())
	if c.flat {
		size := len(call.Work) / call.Pool.Workers()
		call.Pool.Slots(len(errs), func(i, slot int) { errs[i] = c.part(call, i, call.Work[slot*size:][:size]) })
		return errors.Join(errs...)
	}
	for i := range errs {
		if err := c.part(call, i, call.Work); err != nil {
			return err
		}
	}
	return nil
}

// part computes chunk i.
func (c *chunks) part(call *op.Call, i int, work []byte) error {
	from, end := i*c.perChunk, min((i+1)*c.perChunk, c.n)
	take := func(shape []int64) *ir.Array {
		a := &ir.Array{DType: ir.Float, Shape: shape}
		size := a.Bytes()
		a.Data, work = work[:size:size], work[aligned(size):]
		return a
	}
	inner := *call
	inner.Node = c.node
	inner.In = c.inputs(from, end, func(a *ir.Array) *ir.Array {
		w := take(a.Shape)
		widen(call.Pool, ir.View[float32](w), ir.View[uint16](a))
		return w
	})
	inner.Out = make([]*ir.Array, len(call.Out))
	for o, a := range call.Out {
		switch {
		case a == nil:
		case !c.chunkedOut[o]:
			inner.Out[o] = a
		default:
			inner.Out[o] = c.piece(a, from, end)
			if a.DType == ir.Float16 {
				inner.Out[o] = take(inner.Out[o].Shape)
			}
		}
	}
	inner.Work = work
	if err := c.op.Run(&inner); err != nil {
		return err
	}
	for o, a := range call.Out {
		if a != nil && c.chunkedOut[o] && a.DType == ir.Float16 {
			narrow(call.Pool, ir.View[uint16](c.piece(a, from, end)), ir.View[float32](inner.Out[o]),
				call.Bool("exceeds", false))
		}
	}
	return nil
}

// aligned is size rounded up to the alignment of Call.Work.
func aligned(size int64) int64 { return (size + 63) &^ 63 }
