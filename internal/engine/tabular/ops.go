package tabular

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	rows := slices.Concat(trees(), linears(), vectors(), scalings(), encoders(), maps())
	for i := range rows {
		rows[i].Domain = "ai.onnx.ml"
	}
	return rows
}

// numbers is input i, a numeric tensor.
func numbers(in []*ir.Array, i int, name string) (*ir.Array, error) {
	a, err := op.Tensor(in, i, name)
	if err == nil {
		err = number.Check(a.DType)
	}
	return a, err
}

// table is input X, numeric, as rows of features: a tensor of rank 1 is one row.
func table(in []*ir.Array) (x *ir.Array, rows, features int, err error) {
	if x, err = numbers(in, 0, "X"); err != nil {
		return nil, 0, 0, err
	}
	switch len(x.Shape) {
	case 1:
		return x, 1, int(x.Shape[0]), nil
	case 2:
		return x, int(x.Shape[0]), int(x.Shape[1]), nil
	}
	return nil, 0, 0, fmt.Errorf("X is %s, want [N,F] or [F]", x)
}

// prepared is the state that build made in Prepare, or now.
func prepared[T any](n *op.Node, build func(*op.Node) (*T, error)) (*T, error) {
	if made, ok := n.State.(*T); ok {
		return made, nil
	}
	return build(n)
}

// prepare is Prepare for operators that convert their attributes once.
func prepare[T any](build func(*op.Node) (*T, error)) func(*op.Node, []*ir.Array, *op.Pool) (*op.Prepared, error) {
	return func(n *op.Node, _ []*ir.Array, _ *op.Pool) (*op.Prepared, error) {
		made, err := build(n)
		if err != nil {
			return nil, err
		}
		return &op.Prepared{State: made}, nil
	}
}
