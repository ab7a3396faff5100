package linear

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// flexAttentions is FlexAttention without subgraphs; package engine runs one with subgraphs, step by step.
func flexAttentions() []op.Op {
	return []op.Op{{Domain: "ai.onnx.preview", Type: "FlexAttention", Since: 1, Shape: flexShape, Run: runFlex,
		Work: flexWork}}
}

func flexOf(n *op.Node, in []*ir.Array) (*onnxAttention, error) {
	for i := range min(len(in), 3) {
		if in[i] != nil && len(in[i].Shape) != 4 {
			return nil, fmt.Errorf("input %d is %s, want 4 axes", i, in[i])
		}
	}
	if len(in) > 3 {
		return nil, fmt.Errorf("%d inputs, want Q, K and V", len(in))
	}
	p, err := attentionOf(n, in)
	if err == nil && in[inV].DType != in[inQ].DType {
		return nil, fmt.Errorf("inputs Q and V have different types %s and %s", in[inQ].DType, in[inV].DType)
	}
	return p, err
}

func flexShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := flexOf(n, in)
	if err != nil {
		return nil, err
	}
	return p.out[:1], precision(n)
}

// precision is an error unless softmax_precision is a float type.
func precision(n *op.Node) error {
	if p := ir.DType(n.Int("softmax_precision", int64(ir.Float))); !isFloat(p) {
		return fmt.Errorf("softmax_precision is %s, want a float type", p)
	}
	return nil
}

func flexWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := flexOf(n, in)
	if err != nil {
		return 0
	}
	return p.work(in, consumedOutputs(n, p.out[:1]), workers)
}

func runFlex(c *op.Call) error {
	p, err := flexOf(c.Node, c.In)
	if err != nil {
		return err
	}
	p.run(c)
	return nil
}
