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

// words is input i, a tensor of strings.
func words(in []*ir.Array, i int, name string) (*ir.Array, error) {
	a, err := op.Tensor(in, i, name)
	if err == nil && a.DType != ir.String {
		err = fmt.Errorf("input %s is %s, want strings", name, a)
	}
	return a, err
}
