package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// byType has a function for each supported element type of input X.
type byType map[ir.DType]func(*op.Call) error

func (t byType) run(c *op.Call) error { return t[c.In[0].DType](c) }

// check reports an unsupported type of X. 16-bit floats are supported where float is: see wide.
func (t byType) check(x *ir.Array) error {
	dt := x.DType
	if isHalf(dt) {
		dt = ir.Float
	}
	if x.Kind != ir.Dense || t[dt] == nil {
		return fmt.Errorf("input X is %s, which is not a supported type", x)
	}
	return nil
}

// image is input X, checked to have a type of t, a batch, channels and at least one spatial axis.
func (t byType) image(in []*ir.Array) (*ir.Array, error) {
	x, err := op.Arg(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) < 3 {
		return nil, fmt.Errorf("input X is %s and has no spatial axes", x)
	}
	return x, t.check(x)
}

// like are the specs of a node's outputs if the first one has the type of x.
func like(x *ir.Array, shape ...int64) ([]ir.Spec, error) {
	s := ir.Spec{DType: x.DType, Shape: shape}
	return []ir.Spec{s}, s.Valid()
}

// spatial is x's batch and channels followed by these lengths.
func spatial(x *ir.Array, lengths []int) []int64 {
	shape := append(make([]int64, 0, 2+len(lengths)), x.Shape[0], x.Shape[1])
	for _, d := range lengths {
		shape = append(shape, int64(d))
	}
	return shape
}
