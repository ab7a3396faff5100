package operator_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

func node(domain, typ string, attrs ...*ir.Attr) *ir.Node {
	return &ir.Node{Op: ir.OpID{Domain: domain, Type: typ}, Attrs: attrs}
}

func TestAxesOfWeights(t *testing.T) {
	transB := ir.IntAttr("transB", 1)
	for _, c := range []struct {
		n           *ir.Node
		input, rank int
		want        operator.Axes
	}{
		{node("", "MatMul"), 1, 2, operator.Axes{Output: []int{1}, Reduction: []int{0}}},
		{node("", "MatMul"), 0, 3, operator.Axes{Batch: []int{0}, Output: []int{1}, Reduction: []int{2}}},
		{node("ai.onnx", "MatMul"), 1, 1, operator.Axes{Reduction: []int{0}}},
		{node("", "Gemm", transB), 1, 2, operator.Axes{Output: []int{0}, Reduction: []int{1}}},
		{node("", "Gemm", transB), 0, 2, operator.Axes{Output: []int{0}, Reduction: []int{1}}},
		{node("", "Gemm", ir.IntAttr("transA", 1)), 0, 2, operator.Axes{Output: []int{1}, Reduction: []int{0}}},
		{node("", "Conv"), 1, 4, operator.Axes{Output: []int{0}, Reduction: []int{1, 2, 3}}},
		{node("", "ConvTranspose"), 1, 4, operator.Axes{Output: []int{1}, Reduction: []int{0, 2, 3}, Shared: 1}},
		{node("", "LSTM"), 2, 3, operator.Axes{Batch: []int{0}, Output: []int{1}, Reduction: []int{2}}},
		{node("", "Gather", ir.IntAttr("axis", -1)), 0, 2, operator.Axes{Output: []int{1}, Reduction: []int{0}}},
		{node("com.microsoft", "MatMulNBits"), 1, 3, operator.Axes{Output: []int{0}, Reduction: []int{1, 2}}},
		{node("com.microsoft", "DynamicQuantizeLSTM"), 2, 3,
			operator.Axes{Batch: []int{0}, Output: []int{2}, Reduction: []int{1}}},
		{node("com.microsoft", "Attention"), 1, 2, operator.Axes{Output: []int{1}, Reduction: []int{0}}},
	} {
		got, ok := operator.Of(c.n).Input(c.input).Axes(c.n, c.rank)
		if !ok || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s input %d of rank %d: %v, %v; want %v", c.n.Op, c.input, c.rank, got, ok, c.want)
		}
	}
}

func TestAxesOfAnUnsupportedRankAreUnknown(t *testing.T) {
	for op, input := range map[string]int{"Conv": 1, "LSTM": 1, "Gather": 0} {
		n := node("", op)
		if _, ok := operator.Of(n).Input(input).Axes(n, 0); ok {
			t.Errorf("%s has axes for a scalar", op)
		}
	}
}

func TestDomainsAreDistinct(t *testing.T) {
	if ws := operator.Of(node("", "Attention")).Weights(); len(ws) > 0 {
		t.Errorf("ai.onnx's Attention has no weights, got %v", ws)
	}
	if ws := operator.Of(node("com.microsoft", "Attention")).Weights(); len(ws) != 1 {
		t.Errorf("com.microsoft's Attention has one weight, got %v", ws)
	}
	if f := operator.Of(node("org.example", "MatMul")); len(f.Inputs) > 0 {
		t.Error("an operator of another domain has no facts")
	}
}

func TestScalesBelongToTheirWeight(t *testing.T) {
	f := operator.Of(node("com.microsoft", "MatMulNBits"))
	for _, i := range []int{2, 3, 4} {
		if in, ok := f.QuantizedBy(i); !ok || in.Index != 1 {
			t.Errorf("input %d belongs to %v, %v", i, in, ok)
		}
	}
	lstm := operator.Of(node("com.microsoft", "DynamicQuantizeLSTM"))
	for i, weight := range map[int]int{8: 1, 9: 1, 10: 2, 11: 2} {
		if in, ok := lstm.QuantizedBy(i); !ok || in.Index != weight {
			t.Errorf("input %d of DynamicQuantizeLSTM belongs to %v, %v", i, in, ok)
		}
	}
	if got := f.With(operator.Bias); !slices.Equal(got, []int{5}) {
		t.Errorf("biases %v, want [5]", got)
	}
}
