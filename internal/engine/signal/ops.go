package signal

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(windows(), transforms(), filters(), pictures())
}

// tensor is input i, a numeric tensor.
func tensor(in []*ir.Array, i int, name string) (*ir.Array, error) {
	a, err := op.Tensor(in, i, name)
	if err != nil {
		return nil, err
	}
	if err := number.Check(a.DType); err != nil {
		return nil, fmt.Errorf("input %s: %w", name, err)
	}
	return a, nil
}

// scalar is input i, one number.
func scalar(in []*ir.Array, i int, name string) (float64, error) {
	a, err := tensor(in, i, name)
	if err != nil {
		return 0, err
	}
	if a.Elems() != 1 {
		return 0, fmt.Errorf("%s is %s, want one number", name, a)
	}
	if !op.IsKnown(a) {
		return 0, op.ErrUnknown
	}
	var x [1]float64
	number.Read(x[:], a, 0)
	return x[0], nil
}

// maxLength bounds scalar inputs: lengths that float64 represents exactly, and whose squares fit into int64.
const maxLength = 1 << 31

// length is input i, an integer from 1 to maxLength.
func length(in []*ir.Array, i int, name string) (int64, error) {
	x, err := scalar(in, i, name)
	if err != nil {
		return 0, err
	}
	if !(x >= 1 && x <= maxLength) {
		return 0, fmt.Errorf("%s is %v, want 1 to %d", name, x, int64(maxLength))
	}
	return int64(x), nil
}

// one is the type of an operator's only output, which must be one of numbers.
func one(dt int64, shape ...int64) ([]ir.Spec, error) {
	if dt < 0 || dt > 255 {
		return nil, fmt.Errorf("unknown element type %d", dt)
	}
	if err := number.Check(ir.DType(dt)); err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: ir.DType(dt), Shape: shape}}, nil
}

// floats is scratch memory as float64.
func floats(b []byte) []float64 {
	return ir.View[float64](&ir.Array{DType: ir.Double, Data: b})
}
