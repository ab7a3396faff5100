package quant

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// attrs are a node's attributes: int, []int, float64 or string.
type attrs map[string]any

func (a attrs) list() []*ir.Attr {
	var list []*ir.Attr
	for name, v := range a {
		attr := &ir.Attr{Name: name}
		switch v := v.(type) {
		case int:
			attr.Type, attr.I = ir.AttrInt, int64(v)
		case []int:
			attr.Type = ir.AttrInts
			for _, i := range v {
				attr.Ints = append(attr.Ints, int64(i))
			}
		case float64:
			attr.Type, attr.F = ir.AttrFloat, float32(v)
		}
		list = append(list, attr)
	}
	return list
}

func rowOf(name string) *op.Op {
	for _, o := range Ops() {
		if o.Type == name {
			return &o
		}
	}
	return nil
}

func nodeOf(row *op.Op, a attrs, inputs, outputs int) *op.Node {
	n := op.NewNode(ir.OpID{Domain: row.Domain, Type: row.Type}, 25, a.list(), nil)
	n.NumIn, n.Consumed = inputs, make([]bool, outputs)
	for i := range n.Consumed {
		n.Consumed[i] = true
	}
	return n
}

// compute runs a node with that many workers, like an engine. The inputs in constant are passed to Prepare.
func compute(row *op.Op, a attrs, workers, outputs int, in []*ir.Array, constant ...int) ([]*ir.Array, error) {
	pool := op.NewPool(workers)
	defer pool.Close()
	n := nodeOf(row, a, len(in), outputs)
	in = append([]*ir.Array(nil), in...)
	specs, err := row.Shape(n, in)
	if err != nil {
		return nil, err
	}
	if len(constant) > 0 {
		if err := prepare(row, n, in, pool, constant); err != nil {
			return nil, err
		}
	}
	c := &op.Call{Node: n, Ctx: context.Background(), In: in, Pool: pool}
	for _, s := range specs[:outputs] {
		out := ir.NewArray(s.DType, s.Shape...)
		for i := range out.Data {
			out.Data[i] = 0xa5
		}
		c.Out = append(c.Out, out)
	}
	if row.Work != nil {
		c.Work = ir.AlignedBytes(row.Work(n, in, workers))
	}
	return c.Out, row.Run(c)
}

// prepare removes the data of prepared inputs, like an engine.
func prepare(row *op.Op, n *op.Node, in []*ir.Array, pool *op.Pool, constant []int) error {
	given := make([]*ir.Array, len(in))
	n.Const = make([]bool, len(in))
	for _, i := range constant {
		given[i], n.Const[i] = in[i], in[i] != nil
	}
	p, err := row.Prepare(n, given, pool)
	if err != nil || p == nil {
		return err
	}
	n.State = p.State
	for _, i := range p.Drops {
		in[i] = &ir.Array{DType: in[i].DType, Shape: in[i].Shape}
	}
	return nil
}

// must runs a node with one worker and with three, and with B prepacked if possible, which must be bit-identical.
func must(t *testing.T, name string, a attrs, in ...*ir.Array) *ir.Array {
	t.Helper()
	row := rowOf(name)
	one, err := compute(row, a, 1, 1, in)
	if err != nil {
		t.Fatalf("%s %v of %v: %v", name, a, in, err)
	}
	three, err := compute(row, a, 3, 1, in)
	if err != nil || !bytes.Equal(one[0].Data, three[0].Data) {
		t.Fatalf("%s %v of %v: not bit-identical with three workers, %v", name, a, in, err)
	}
	if row.Prepare != nil {
		var all []int
		for i := 1; i < len(in); i++ {
			all = append(all, i)
		}
		prepared, err := compute(row, a, 2, 1, in, all...)
		if err != nil || !bytes.Equal(one[0].Data, prepared[0].Data) {
			t.Fatalf("%s %v of %v: not bit-identical when prepacked, %v", name, a, in, err)
		}
	}
	return one[0]
}

// quantizedValues are random quantized values of a type.
func quantizedValues(seed uint64, dt ir.DType, shape ...int64) *ir.Array {
	r := rand.New(rand.NewPCG(seed, 0))
	a := ir.NewArray(dt, shape...)
	for i := range a.Data {
		a.Data[i] = byte(r.Uint32())
	}
	return a
}

func random(seed uint64, shape ...int64) *ir.Array {
	r := rand.New(rand.NewPCG(seed, 0))
	a := ir.NewArray(ir.Float, shape...)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(r.NormFloat64() * 3)
	}
	return a
}

// scale are random positive floats.
func scale(seed uint64, shape ...int64) *ir.Array {
	a := random(seed, shape...)
	for i, v := range ir.View[float32](a) {
		ir.View[float32](a)[i] = v*v/50 + 0.01
	}
	return a
}

func one(v float32) *ir.Array { return ir.ArrayOf([]float32{v}) }

// wholes are the elements of a quantized tensor.
func wholes(t *testing.T, a *ir.Array) []int32 {
	t.Helper()
	x, err := integers(a)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// half is a tensor of floats as float16.
func half(a *ir.Array) *ir.Array {
	to := ir.NewArray(ir.Float16, a.Shape...)
	kernel.F16FromF32(ir.View[uint16](to), ir.View[float32](a))
	return to
}

func widened(a *ir.Array) *ir.Array {
	to := ir.NewArray(ir.Float, a.Shape...)
	kernel.F32FromF16(ir.View[float32](to), ir.View[uint16](a))
	return to
}
