package quant

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

type attrs = optest.Attrs

// compute runs a node. The inputs in constant are passed to Prepare.
func compute(name string, a attrs, workers, outputs int, in []*ir.Array, constant ...int) ([]*ir.Array, error) {
	return optest.RunRow(rowOf(name), optest.Case{
		Type: name, Version: 25, In: in, Attrs: a.List(), Consts: constant, Outputs: outputs, Workers: workers,
	})
}

// rowOf is the operator's row, of any domain.
func rowOf(name string) *op.Op {
	for _, o := range Ops() {
		if o.Type == name {
			return &o
		}
	}
	return nil
}

// must runs a node with one worker and with three, and with B prepacked if possible, which must be bit-identical.
func must(t *testing.T, name string, a attrs, in ...*ir.Array) *ir.Array {
	t.Helper()
	one, err := compute(name, a, 1, 1, in)
	if err != nil {
		t.Fatalf("%s %v of %v: %v", name, a, in, err)
	}
	three, err := compute(name, a, 3, 1, in)
	if err != nil || !bytes.Equal(one[0].Data, three[0].Data) {
		t.Fatalf("%s %v of %v: not bit-identical with three workers, %v", name, a, in, err)
	}
	if rowOf(name).Prepare != nil {
		prepared, err := compute(name, a, 2, 1, in, allButFirst(in)...)
		if err != nil || !bytes.Equal(one[0].Data, prepared[0].Data) {
			t.Fatalf("%s %v of %v: not bit-identical when prepacked, %v", name, a, in, err)
		}
	}
	return one[0]
}

// allButFirst are the indices of all inputs but input 0.
func allButFirst(in []*ir.Array) (list []int) {
	for i := 1; i < len(in); i++ {
		list = append(list, i)
	}
	return list
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
