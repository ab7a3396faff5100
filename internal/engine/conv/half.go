package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func isHalf(dt ir.DType) bool { return dt == ir.Float16 || dt == ir.BFloat16 }

// wide adds 16-bit floats to operators that compute in float32: inputs are widened, which is exact, and outputs are
// rounded once.
func wide(ops ...op.Op) []op.Op {
	for i := range ops {
		ops[i] = widened(ops[i])
	}
	return ops
}

func widened(o op.Op) op.Op {
	w := o
	w.Work = func(n *op.Node, in []*ir.Array, workers int) int64 { return wideWork(&o, n, in, workers) }
	w.Run = func(c *op.Call) error {
		if !isHalf(c.In[0].DType) {
			return o.Run(c)
		}
		return runWide(&o, c)
	}
	return w
}

// wideWork is the scratch memory of o for float32, plus the arrays themselves.
func wideWork(o *op.Op, n *op.Node, in []*ir.Array, workers int) int64 {
	wide := floats(in, nil)
	work := int64(0)
	if o.Work != nil {
		work = o.Work(n, wide, workers)
	}
	out, err := o.Shape(n, in)
	if err != nil || !isHalf(in[0].DType) {
		return work
	}
	for i, a := range in {
		if a != nil && isHalf(a.DType) {
			work += aligned(wide[i].Bytes())
		}
	}
	for _, s := range out {
		work += aligned(4 * s.Elems())
	}
	return work
}

func runWide(o *op.Op, c *op.Call) error {
	inner := *c
	take := func(size int64) []byte {
		b := inner.Work[:size:size]
		inner.Work = inner.Work[aligned(size):]
		return b
	}
	inner.In = floats(c.In, take)
	inner.Out = make([]*ir.Array, len(c.Out))
	for i, a := range c.Out {
		if a != nil && isHalf(a.DType) {
			a = &ir.Array{DType: ir.Float, Shape: a.Shape}
			a.Data = take(a.Bytes())
		}
		inner.Out[i] = a
	}
	if err := o.Run(&inner); err != nil {
		return err
	}
	for i, a := range c.Out {
		if a != nil && isHalf(a.DType) {
			narrow(a, ir.View[float32](inner.Out[i]))
		}
	}
	return nil
}

// floats are in with 16-bit floats as float32, in memory from take; only their specs if they have no data or take is
// nil.
func floats(in []*ir.Array, take func(size int64) []byte) []*ir.Array {
	out := make([]*ir.Array, len(in))
	for i, a := range in {
		if a == nil || !isHalf(a.DType) {
			out[i] = a
			continue
		}
		out[i] = &ir.Array{DType: ir.Float, Shape: a.Shape}
		if take != nil && len(a.Data) > 0 {
			out[i].Data = take(out[i].Bytes())
			widen(ir.View[float32](out[i]), a)
		}
	}
	return out
}

// widened32 is a as float32 if it has 16-bit floats.
func widened32(a *ir.Array) *ir.Array {
	return floats([]*ir.Array{a}, func(size int64) []byte { return ir.AlignedBytes(size) })[0]
}

func widen(to []float32, a *ir.Array) {
	if a.DType == ir.Float16 {
		kernel.F32FromF16(to, ir.View[uint16](a))
	} else {
		kernel.F32FromBF16(to, ir.View[uint16](a))
	}
}

func narrow(a *ir.Array, from []float32) {
	if a.DType == ir.Float16 {
		kernel.F16FromF32(ir.View[uint16](a), from)
	} else {
		kernel.BF16FromF32(ir.View[uint16](a), from)
	}
}

// aligned is size rounded up to the alignment of Call.Work.
func aligned(size int64) int64 { return (size + 63) &^ 63 }
