package linear

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// contribAttentions are com.microsoft's attention operators, as ONNX Runtime computes them on CPUs.
func contribAttentions() []op.Op {
	return []op.Op{
		{Type: "Attention", Domain: microsoft, Since: 1, Shape: selfShape, Run: runSelf, Work: selfWork,
			Prepare: prepareSelf, States: []any{(*gemm.PackedFloat)(nil)}},
		{Type: "MultiHeadAttention", Domain: microsoft, Since: 1, Shape: crossShape, Run: runCross, Work: crossWork},
		{Type: "GroupQueryAttention", Domain: microsoft, Since: 1, Shape: groupShape, Run: runGroup, Work: groupWork},
	}
}

// A contribAttention is the common part of those operators.
type contribAttention struct {
	multihead
	past  int
	index *indexMask
	bias  *mask
}

// masks reads the optional mask and the bias of the scores.
func (p *contribAttention) masks(n *op.Node, index, bias *ir.Array) (err error) {
	// A single query is at the last position: no key is later.
	p.Causal = n.Bool("unidirectional", false) && p.Queries > 1
	if index != nil {
		if p.index, err = indexMaskOf(index, p.batch, p.Queries, p.Keys); err != nil {
			return err
		}
		p.index.filter, p.index.past = n.Float("mask_filter_value", -10000), p.past
	}
	if bias != nil {
		if len(bias.Shape) != 4 || !isFloat(bias.DType) {
			return fmt.Errorf("input attention_bias is %s, want four axes of floats", bias)
		}
		p.bias, err = maskOf(bias, p.scores(), false)
	}
	return err
}

func (p *contribAttention) scores() [4]int64 {
	return [4]int64{int64(p.batch), int64(p.heads), int64(p.Queries), int64(p.Keys)}
}

// leastFilter is a filter above which later keys, whose scores are less by the largest float32, always have a weight of
// zero.
const leastFilter = -1e38

// mask is the mask of one head, nil for none. Causal attention limits the key range where that is bit-identical to what
// ONNX Runtime does, which adds the least float32 to the scores of later keys: not with a bias, which could be as low as
// that for all keys before them, and not if the scores have a consumer.
func (p *contribAttention) mask(index *ir.Array, probed bool) func(batch, head int) attention.Mask[float32] {
	later := p.Causal && (p.bias != nil || probed || p.index != nil && p.index.filter <= leastFilter)
	if p.Causal && !later {
		p.keyRange = func(int) attention.KeyRange { return within(p.Keys, p.past, -1, 0) }
	}
	if p.index != nil {
		p.index.index, p.index.causal = ir.View[int32](index), later
	}
	if p.index == nil && p.bias == nil && !later {
		return nil
	}
	return func(batch, head int) attention.Mask[float32] {
		var flags attention.Mask[float32]
		switch {
		case p.index != nil:
			flags = p.index.of(batch)
		case later:
			flags = func(scores []float32, query, key int) { maskLater(scores, p.past+query, key) }
		}
		return combinedMask(flags, maskFor[float32](p.bias, batch, head))
	}
}

// scale is the attribute's, or one over the root of a head's size.
func (p *contribAttention) scale(n *op.Node) float32 {
	if s := n.Float("scale", 0); s != 0 {
		return s
	}
	return float32(1 / math.Sqrt(float64(max(p.Size, 1))))
}
