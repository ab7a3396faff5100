package random

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	rows := []op.Op{
		{Type: "RandomNormal", Since: 1, Shape: givenShape, Run: runNormal},
		{Type: "RandomNormalLike", Since: 1, Shape: likeShape, Run: runNormal},
		{Type: "RandomUniform", Since: 1, Shape: givenShape, Run: runUniform},
		{Type: "RandomUniformLike", Since: 1, Shape: likeShape, Run: runUniform},
		{Type: "Bernoulli", Since: 15, Shape: bernoulliShape, Run: runBernoulli},
		{Type: "Multinomial", Since: 7, Shape: multinomialShape, Run: runMultinomial},
	}
	for i := range rows {
		rows[i].Impure, rows[i].Prepare = true, count
	}
	return rows
}

// one is the type of the only output: attribute dtype, or def, with that shape.
func one(n *op.Node, def ir.DType, shape []int64, allowed ...ir.DType) ([]ir.Spec, error) {
	dt := n.Int("dtype", int64(def))
	if dt < 0 || dt > 255 || !slices.Contains(allowed, ir.DType(dt)) {
		return nil, fmt.Errorf("element type is %d, want one of %v", dt, allowed)
	}
	spec := ir.Spec{DType: ir.DType(dt), Shape: shape}
	return []ir.Spec{spec}, spec.Valid()
}

var floats = []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16}

func givenShape(n *op.Node, _ []*ir.Array) ([]ir.Spec, error) {
	if !n.Has("shape") {
		return nil, fmt.Errorf("attribute shape is missing")
	}
	return one(n, ir.Float, n.Ints("shape"), floats...)
}

func likeShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Tensor(in, 0, "input")
	if err != nil {
		return nil, err
	}
	return one(n, a.DType, a.Shape, floats...)
}

func runNormal(c *op.Call) error {
	mean, scale := float64(c.Float("mean", 0)), float64(c.Float("scale", 1))
	newNodeStreams(c).fill(c.Pool, c.Out[0], func(r *rand.Rand,
		_ int) float64 {
		// The conversion prevents a fused multiply-add: the numbers are the same on all CPUs.
		return mean + float64(scale*r.NormFloat64())
	})
	return nil
}

func runUniform(c *op.Call) error {
	low, high := float64(c.Float("low", 0)), float64(c.Float("high", 1))
	newNodeStreams(c).fill(c.Pool, c.Out[0], func(r *rand.Rand,
		_ int) float64 {
		return low + float64((high-low)*r.Float64())
	})
	return nil
}

func bernoulliShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Tensor(in, 0, "input")
	if err != nil {
		return nil, err
	}
	if !a.DType.IsFloat() {
		return nil, fmt.Errorf("input is %s, want probabilities", a)
	}
	return one(n, a.DType, a.Shape, append(slices.Clone(floats), ir.Bool,
		ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64)...)
}

func runBernoulli(c *op.Call) error {
	newNodeStreams(c).fill(c.Pool, c.Out[0], func(r *rand.Rand, i int) float64 {
		var p [1]float64
		number.Read(p[:], c.In[0], i)
		if r.Float64() < p[0] {
			return 1
		}
		return 0
	})
	return nil
}
