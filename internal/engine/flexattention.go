package engine

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// flexAttention runs ai.onnx.preview FlexAttention, whose subgraphs modify scores and probabilities, as the function
// that defines it:
//
//	Y = prob_mod(Softmax(score_mod(scale·Q·Kᵀ)))·V
//
// The scores are materialized, since the subgraphs may read all of them.
func (b *bodies) flexAttention() ([]*ir.Array, error) {
	q, k, v := b.c.In[0], b.c.In[1], b.c.In[2]
	specs, err := b.s.op.Shape(b.s.Node, []*ir.Array{q, k, v})
	if err != nil {
		return nil, err
	}
	scale := b.c.Float("scale", float32(1/math.Sqrt(float64(max(q.Shape[3], 1)))))
	// The query heads that share a key head are adjacent: together they are one matrix.
	grouped := []int64{q.Shape[0], k.Shape[1], 0, q.Shape[3]}
	if k.Shape[1] > 0 {
		grouped[2] = q.Shape[1] / k.Shape[1] * q.Shape[2]
	}
	scores, err := b.single(ir.OpID{Domain: "com.microsoft", Type: "FusedMatMul"},
		[]*ir.Array{shaped(q, grouped...), k}, floatAttr("alpha", scale), intAttr("transB", 1))
	if err != nil {
		return nil, err
	}
	precision := b.precision(q.DType)
	if scores, err = b.cast(shaped(scores, q.Shape[0], q.Shape[1], q.Shape[2], k.Shape[2]), precision); err == nil {
		scores, err = b.modified("score_mod", scores)
	}
	if err != nil {
		return nil, err
	}
	probs, err := b.single(ir.OpID{Type: "Softmax"}, []*ir.Array{scores})
	if err == nil {
		probs, err = b.modified("prob_mod", probs)
	}
	if err != nil {
		return nil, err
	}
	if v, err = b.cast(v, precision); err != nil {
		return nil, err
	}
	y, err := b.single(ir.OpID{Type: "MatMul"}, []*ir.Array{shaped(probs, grouped[0], grouped[1], grouped[2],
		k.Shape[2]), v})
	if err == nil {
		y, err = b.cast(shaped(y, specs[0].Shape...), specs[0].DType)
	}
	return []*ir.Array{y}, err
}

// precision is the data type inside the subgraphs.
func (b *bodies) precision(dt ir.DType) ir.DType {
	if dt != ir.Double {
		dt = ir.Float
	}
	return ir.DType(b.c.Int("softmax_precision", int64(dt)))
}

// modified is the output of the named subgraph for x; x if there is none.
func (b *bodies) modified(name string, x *ir.Array) (*ir.Array, error) {
	if b.s.bodies[name] == nil {
		return x, nil
	}
	out, err := b.runBody(name, []*ir.Array{x})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(out) != 1 || out[0].String() != x.String() {
		return nil, fmt.Errorf("%s returns %v for %s", name, out, x)
	}
	return out[0], nil
}

func (b *bodies) cast(x *ir.Array, to ir.DType) (*ir.Array, error) {
	if x.DType == to {
		return x, nil
	}
	return b.single(ir.OpID{Type: "Cast"}, []*ir.Array{x}, intAttr("to", int64(to)))
}

// single runs another operator with one output in place of the step.
func (b *bodies) single(id ir.OpID, in []*ir.Array, attrs ...*ir.Attr) (*ir.Array, error) {
	const newest = 1 << 20
	s := fused(id, newest, b.s, make([]int, len(in)), []int{0}, attrs...)
	if s == nil {
		return nil, fmt.Errorf("operator %s is not supported by the engine", id)
	}
	out, err := runAlone(s, op.Call{Ctx: b.c.Ctx, In: in, Pool: b.c.Pool, Account: b.c.Account})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// shaped is a with another shape, over the same data.
func shaped(a *ir.Array, shape ...int64) *ir.Array {
	return &ir.Array{DType: a.DType, Shape: shape, Data: a.Data}
}
