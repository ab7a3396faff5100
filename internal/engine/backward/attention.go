package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// attentions are attention that stores for each query the log-sum-exp of its scores, and the gradient,
// which recomputes the scores from it, block by block of queries (Dao et al., FlashAttention, 2022, arXiv:2205.14135,
// appendix B.2):
//
//	Y, L = AttentionKeep(Q, K, V, mask)                      Y = Softmax(scale·Q·Kᵀ + mask)·V
//	dQ, dK, dV = AttentionGrad(Q, K, V, mask, Y, L, dY)
//
// Q, K, V and Y have their axes permuted by permQ, permK, permV and permY, the last one unchanged; after that the axes
// before the last two are the same in all, except that the last of them may be 1 in both K and V, whose heads a group
// of heads of Q shares (Ainslie et al., GQA, 2023, arXiv:2305.13245). The optional mask is broadcast to the scores.
// Attribute softcap c replaces a scaled score s by c·tanh(s/c), before the mask. Attributes left_window_size and
// right_window_size limit the keys to those around the position of a query, which is offset plus its index; the scores
// of blocks of other keys are not computed. With attribute zeros a query whose keys are all masked by -Inf has the
// result zero; a query without keys in its window always has.
func attentions() []op.Op {
	return []op.Op{
		{Type: "AttentionKeep", Shape: attentionShape, Work: attentionWork(false),
			Run: op.FloatOrDouble(runKeep[float32], runKeep[float64])},
		{Type: "AttentionGrad", Shape: attentionGradShape, Work: attentionWork(true),
			Run: op.FloatOrDouble(runGrad[float32], runGrad[float64])},
	}
}

// An attention is one node and its operands.
type attention struct {
	q, k, v, y    stack
	mask          *stack // strides 0 in broadcast axes
	queries, keys int
	size, value   int
	heads         int
	group         int // consecutive heads of Q per head of K and V
	keyWindow
	softcap   float64
	out, sums []int64 // shapes of Y and L
}

func attentionOf(n *op.Node, in []*ir.Array) (*attention, error) {
	p := &attention{}
	for i, s := range []*stack{&p.q, &p.k, &p.v} {
		name := "QKV"[i : i+1]
		a, err := op.Arg(in, i, name)
		if err != nil {
			return nil, err
		}
		if err := floating(a, i); err != nil {
			return nil, err
		}
		if a.DType != in[0].DType {
			return nil, fmt.Errorf("input %s is %s, input Q is %s", name, a, in[0])
		}
		if *s, err = stackOf(n, name, a); err != nil {
			return nil, err
		}
		if !s.shares(p.q.lead()) {
			return nil, fmt.Errorf("input %s %s: want the leading axes of Q, %v", name, a, p.q.lead())
		}
	}
	if p.group = p.k.spread(p.q.lead()); p.v.spread(p.q.lead()) != p.group {
		return nil, fmt.Errorf("inputs K %s and V %s have different numbers of heads", in[1], in[2])
	}
	var err error
	if p.keyWindow, err = keyWindowOf(n); err != nil {
		return nil, err
	}
	p.softcap = float64(n.Float("softcap", 0))
	p.queries, p.keys, p.size, p.value = p.q.rows(), p.k.rows(), p.q.cols(), p.v.cols()
	if p.k.cols() != p.size || p.v.rows() != p.keys {
		return nil, fmt.Errorf("inputs Q %v, K %v and V %v do not match", p.q.shape, p.k.shape, p.v.shape)
	}
	p.heads = int(op.Product(p.q.lead()))
	p.sums = p.q.shape[:len(p.q.shape)-1]
	if err := p.result(n); err != nil {
		return nil, err
	}
	return p, p.setMask(in)
}

// result computes shape and strides of Y.
func (p *attention) result(n *op.Node) error {
	shape := append(slices.Clone(p.sums), int64(p.value))
	if err := (ir.Spec{Shape: shape}).Valid(); err != nil {
		return err
	}
	if err := (ir.Spec{Shape: append(slices.Clone(p.sums), int64(p.keys))}).Valid(); err != nil {
		return err
	}
	perm := n.Ints("permY")
	if perm == nil {
		p.out, p.y = shape, stack{shape, op.Strides(shape)}
		return nil
	}
	if !isOrder(perm, len(shape)) {
		return fmt.Errorf("the axes of a result %v cannot be permuted by %v", shape, perm)
	}
	p.out = inOrder(shape, perm)
	strides := make([]int64, len(shape))
	for i, s := range op.Strides(p.out) {
		strides[perm[i]] = s
	}
	p.y = stack{shape, strides}
	return nil
}

func (p *attention) setMask(in []*ir.Array) error {
	m := op.Opt(in, 3)
	if m == nil {
		return nil
	}
	if err := isLike(in[0], m, 3, -1); err != nil {
		return err
	}
	scores := append(slices.Clone(p.sums), int64(p.keys))
	s := stack{scores, make([]int64, len(scores))}
	for i, d := range m.Shape {
		at := len(scores) - len(m.Shape) + i
		switch {
		case at < 0 || d != 1 && d != scores[at]:
			return fmt.Errorf("input mask %s does not broadcast to %v", m, scores)
		case d != 1:
			s.strides[at] = op.Product(m.Shape[i+1:])
		}
	}
	p.mask = &s
	return nil
}

func attentionShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := attentionOf(n, in)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: in[0].DType, Shape: p.out}, {DType: in[0].DType, Shape: p.sums}}, nil
}

func attentionGradShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := attentionOf(n, in)
	if err != nil {
		return nil, err
	}
	for i, shape := range [][]int64{p.out, p.sums, p.out} {
		a, err := op.Arg(in, 4+i, []string{"Y", "L", "dY"}[i])
		if err != nil {
			return nil, err
		}
		if a.DType != in[0].DType || !slices.Equal(a.Shape, shape) {
			return nil, fmt.Errorf("input %d is %s, want the shape %v", 4+i, a, shape)
		}
	}
	return []ir.Spec{in[0].Spec(), in[1].Spec(), in[2].Spec()}, nil
}
