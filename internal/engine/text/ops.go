package text

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return []op.Op{
		{Type: "StringConcat", Since: 20, Shape: concatShape, Run: runConcat},
		{Type: "StringSplit", Since: 20, Run: runSplit},
		{Type: "StringNormalizer", Since: 10, Run: runNormalizer},
		{Type: "RegexFullMatch", Since: 20, Shape: matchShape, Run: runMatch},
		{Type: "TfIdfVectorizer", Since: 9, Shape: countShape, Run: runCount, Prepare: prepareCount},
	}
}

// tensor is input i, a tensor.
func tensor(in []*ir.Array, i int, name string) (*ir.Array, error) {
	a, err := op.Arg(in, i, name)
	if err != nil {
		return nil, err
	}
	if a.Kind != ir.Dense {
		return nil, fmt.Errorf("input %s is %s, not a tensor", name, a)
	}
	if err := a.Spec().Valid(); err != nil {
		return nil, fmt.Errorf("input %s: %w", name, err)
	}
	return a, nil
}

// words is input i, a tensor of strings.
func words(in []*ir.Array, i int, name string) (*ir.Array, error) {
	a, err := tensor(in, i, name)
	if err == nil && a.DType != ir.String {
		err = fmt.Errorf("input %s is %s, not strings", name, a)
	}
	return a, err
}

// one is the type of an operator's only output.
func one(dt ir.DType, shape ...int64) ([]ir.Spec, error) {
	return []ir.Spec{{DType: dt, Shape: shape}}, nil
}
