package op

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// One is the type of an operator's only output.
func One(dt ir.DType, shape ...int64) ([]ir.Spec, error) {
	return []ir.Spec{{DType: dt, Shape: shape}}, nil
}

// InputType returns the type of input i for every output.
func InputType(i int) func(*Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *Node, in []*ir.Array) ([]ir.Spec, error) {
		a, err := Arg(in, i, fmt.Sprint(i))
		if err != nil {
			return nil, err
		}
		specs := make([]ir.Spec, n.NumOut())
		for j := range specs {
			specs[j] = a.Spec()
		}
		return specs, nil
	}
}

// BroadcastShapes is the broadcast shape by NumPy's rules (ONNX, "Multidirectional Broadcasting").
func BroadcastShapes(shapes ...[]int64) ([]int64, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]int64, rank)
	for i := range out {
		out[i] = 1
	}
	for _, s := range shapes {
		ahead := rank - len(s)
		for i, d := range s {
			o := &out[ahead+i]
			switch {
			case *o == d || d == 1:
			case *o == 1:
				*o = d
			default:
				return nil, fmt.Errorf("shapes %v do not broadcast: %d and %d at axis %d", shapes, *o, d, ahead+i)
			}
		}
	}
	return out, nil
}

// Axis is axis counted from the first, or an error if a tensor of that rank has no such axis.
func Axis(axis int64, rank int) (int, error) {
	if axis < -int64(rank) || axis >= int64(rank) {
		return 0, fmt.Errorf("axis %d is out of range for rank %d", axis, rank)
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis), nil
}

// Ints are the elements of an integer tensor, such as shapes, axes and pads. It returns ErrUnknown if they are not
// known yet.
func Ints(a *ir.Array) ([]int64, error) {
	if !IsKnown(a) {
		return nil, ErrUnknown
	}
	switch a.DType {
	case ir.Int64:
		return ir.View[int64](a), nil
	case ir.Int32:
		return widen(ir.View[int32](a)), nil
	case ir.Int16:
		return widen(ir.View[int16](a)), nil
	case ir.Int8:
		return widen(ir.View[int8](a)), nil
	case ir.Uint8:
		return widen(ir.View[uint8](a)), nil
	case ir.Uint16:
		return widen(ir.View[uint16](a)), nil
	case ir.Uint32:
		return widen(ir.View[uint32](a)), nil
	case ir.Uint64:
		return widen(ir.View[uint64](a)), nil
	}
	return nil, fmt.Errorf("data type is %s, want an integer type", a)
}

func widen[T int32 | int16 | int8 | uint8 | uint16 | uint32 | uint64](xs []T) []int64 {
	out := make([]int64, len(xs))
	for i, x := range xs {
		out[i] = int64(x)
	}
	return out
}

// Product is the number of elements of a shape.
func Product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// Strides are the strides of a row-major shape, in elements.
func Strides(shape []int64) []int64 {
	s := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}
