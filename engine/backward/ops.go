package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// domain is that of all rows of this package.
const domain = "mcompress"

// Ops are the rows of the table.
func Ops() []op.Op {
	ops := slices.Concat(
		activations(),
		batchNorms(),
		convolutions(),
		pools(),
	)
	for i := range ops {
		ops[i].Domain, ops[i].Since = domain, 1
	}
	return ops
}

// A number is an element of what gradients are computed of.
type number interface{ float32 | float64 }

// byType runs the function for the type of input 0.
func byType(single, double func(*op.Call) error) func(*op.Call) error {
	return func(c *op.Call) error {
		if c.In[0].DType == ir.Double {
			return double(c)
		}
		return single(c)
	}
}

// alike checks that inputs 0 to k-1 are there and are Float or Double of one type and shape, and gives output
// 0 that type.
func alike(k int) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		for i := range k {
			a, err := op.Arg(in, i, fmt.Sprint(i))
			if err != nil {
				return nil, err
			}
			if a.DType != ir.Float && a.DType != ir.Double {
				return nil, fmt.Errorf("input %d is %s, want float or double", i, a)
			}
			if a.DType != in[0].DType || !slices.Equal(a.Shape, in[0].Shape) {
				return nil, fmt.Errorf("input %d is %s, want %s as input 0", i, a, in[0])
			}
		}
		return []ir.Spec{in[0].Spec()}, nil
	}
}
