package train

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// tensor returns input i, a tensor of one of these types.
func tensor(in []*ir.Array, i int, name string, types ...ir.DType) (*ir.Array, error) {
	a, err := op.Arg(in, i, name)
	if err != nil {
		return nil, err
	}
	if a.Kind != ir.Dense || !slices.Contains(types, a.DType) {
		return nil, fmt.Errorf("input %s is %s, want %s", name, a, types[0])
	}
	return a, nil
}

// like checks that input i has the type and shape of a.
func like(a *ir.Array, in []*ir.Array, i int, name string) error {
	b, err := tensor(in, i, name, a.DType)
	if err != nil {
		return err
	}
	if !slices.Equal(a.Shape, b.Shape) {
		return fmt.Errorf("input %s is %s, want %s", name, b, a)
	}
	return nil
}

// floats checks that input i has n elements of type Float.
func floats(in []*ir.Array, i int, name string, n int64) error {
	a, err := tensor(in, i, name, ir.Float)
	if err != nil {
		return err
	}
	if a.Elems() != n {
		return fmt.Errorf("input %s is %s, want %d elements", name, a, n)
	}
	return nil
}

// tokens returns input 3 of a loss, whose elements are about equally many consecutive ones of x.
func tokens(in []*ir.Array, x *ir.Array) (*ir.Array, error) {
	keep, err := tensor(in, 3, "keep", ir.Float)
	if err == nil && (keep.Elems() == 0 || x.Elems()%keep.Elems() != 0) {
		err = fmt.Errorf("input keep is %s, which are no parts of %s", keep, x)
	}
	return keep, err
}

// scalarSpec is the spec of a single number.
func scalarSpec(dt ir.DType) ir.Spec { return ir.Spec{DType: dt, Shape: []int64{1}} }

// A number is an element type of losses: float64 is for tests with finite differences.
type number interface{ float32 | float64 }

// output returns the elements of output i, nil if it is unused.
func output[T ir.Element](c *op.Call, i int) []T {
	if i >= len(c.Out) || c.Out[i] == nil {
		return nil
	}
	return ir.View[T](c.Out[i])
}
