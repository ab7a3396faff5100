package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// cropped are the borders that resize the axes to the sizes of CenterCropPad, half on each side; an odd one is at the
// end.
func cropped(n *op.Node, in []*ir.Array) (*ir.Array, []border, error) {
	data, err := op.Arg(in, 0, "input_data")
	if err != nil {
		return nil, nil, err
	}
	sizes, err := nonNegative(in, 1, "shape")
	if err != nil {
		return nil, nil, err
	}
	axes, err := axesOr(n.Ints("axes"), n.Has("axes"), len(data.Shape))
	if err != nil {
		return nil, nil, err
	}
	if len(sizes) != len(axes) {
		return nil, nil, fmt.Errorf("shape %v for %d axes", sizes, len(axes))
	}
	around := make([]border, len(data.Shape))
	for i, axis := range axes {
		more := min(sizes[i], maxPad) - data.Shape[axis]
		around[axis] = border{more / 2, more - more/2}
	}
	return data, around, nil
}

func cropShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	data, around, err := cropped(n, in)
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(data.Shape)
	for i, b := range around {
		shape[i] += b.begin + b.end
	}
	return op.One(data.DType, shape...)
}

func runCrop(c *op.Call) error {
	data, around, err := cropped(c.Node, c.In)
	if err != nil {
		return err
	}
	surround(c.Pool, c.Out[0], data, around, ir.NewArray(data.DType))
	return nil
}
