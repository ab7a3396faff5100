package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// gathers is the gradient of Gather:
//
//	dX = GatherGrad(indices, dY)
//
// of the shape in attribute shape, sums the gathered elements of each index along attribute axis, in order of the
// indices.
func gathers() []op.Op {
	return []op.Op{{Type: "GatherGrad", Shape: gatherShape, Run: runGather}}
}

func gatherShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	indices, err := op.Arg(in, 0, "indices")
	if err != nil {
		return nil, err
	}
	dy, err := op.Arg(in, 1, "dY")
	if err != nil {
		return nil, err
	}
	if err := floating(dy, 1); err != nil {
		return nil, err
	}
	if indices.DType != ir.Int32 && indices.DType != ir.Int64 || indices.Spec().Valid() != nil {
		return nil, fmt.Errorf("input indices is %s", indices)
	}
	out := ir.Spec{DType: dy.DType, Shape: n.Ints("shape")}
	if err := out.Valid(); err != nil {
		return nil, fmt.Errorf("attribute shape: %w", err)
	}
	axis, err := op.Axis(n.Int("axis", 0), len(out.Shape))
	if err != nil {
		return nil, err
	}
	if want := slices.Concat(out.Shape[:axis], indices.Shape, out.Shape[axis+1:]); !slices.Equal(want, dy.Shape) {
		return nil, fmt.Errorf("input dY is %s, want the shape %v", dy, want)
	}
	return []ir.Spec{out}, nil
}

func runGather(c *op.Call) error {
	indices, err := op.Ints(c.In[0])
	if err != nil {
		return err
	}
	axis, err := op.Axis(c.Int("axis", 0), len(c.Out[0].Shape))
	if err != nil {
		return err
	}
	size := c.Out[0].Shape[axis]
	for i, at := range indices {
		if at < -size || at >= size {
			return fmt.Errorf("index %d is %d, but axis %d has size %d", i, at, axis, size)
		}
	}
	g := scatter{indices, int(op.Product(c.Out[0].Shape[:axis])), int(size), int(op.Product(c.Out[0].Shape[axis+1:]))}
	if c.Out[0].DType == ir.Double {
		scatterAdd(c, g, func(dst, x []float64) {
			for i, v := range x {
				dst[i] += v
			}
		})
	} else {
		scatterAdd(c, g, func(dst, x []float32) { kernel.Add(dst, dst, x) })
	}
	return nil
}

// A scatter adds rows of inner elements at indices of an axis, outer times.
type scatter struct {
	indices            []int64
	outer, size, inner int
}

// scatterPieces is the number of parts of the axis that run in parallel: each task iterates over all indices, so that
// no two workers write to the same element.
const scatterPieces = 16

func scatterAdd[T number](c *op.Call, g scatter, add func(dst, x []T)) {
	dx, dy := ir.View[T](c.Out[0]), ir.View[T](c.In[1])
	parts := max(1, min(scatterPieces/max(g.outer, 1), g.size*g.inner/grain))
	c.Pool.For(g.outer*parts, func(task int) {
		o, p := task/parts, task%parts
		from, to := p*g.size/parts, (p+1)*g.size/parts
		out, in := dx[o*g.size*g.inner:], dy[o*len(g.indices)*g.inner:]
		clear(out[from*g.inner : to*g.inner])
		for i, at := range g.indices {
			// Checked above: negative indices count from the end.
			if at < 0 {
				at += int64(g.size)
			}
			if k := int(at); k >= from && k < to {
				add(out[k*g.inner:][:g.inner], in[i*g.inner:][:g.inner])
			}
		}
	})
}
