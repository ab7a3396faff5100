package linear

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// fusedAttentions is the operator that package engine fuses attention into:
//
//	Y = MatMul(Softmax(scale·MatMul(Q, K) + mask), V)
//
// where Q, K, V and Y have their axes in the orders permQ, permK, permV and permY, and broadcast like the fused
// operators. K is transposed, as the right operand. Types may differ: Y has the type of V.
func fusedAttentions() []op.Op {
	return []op.Op{{Domain: "mcompress", Type: "Attention", Since: 1, Shape: fusedShape, Run: runFused,
		Work: fusedWork}}
}

// A fusedAttention is one node with the shapes of its inputs.
type fusedAttention struct {
	attention.Shape
	batch      []int64
	q, k, v    operand
	y          []int64 // strides of the result before it is transposed
	mask       *mask
	maskMatrix operand // the mask as matrices
	out        ir.Spec
}

func fusedOf(n *op.Node, in []*ir.Array) (*fusedAttention, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	p := &fusedAttention{}
	for i, o := range []*operand{&p.q, &p.k, &p.v} {
		name := []string{"Q", "K", "V"}[i]
		a, err := op.Arg(in, i, name)
		if err != nil {
			return nil, err
		}
		if !isFloat(a.DType) || len(a.Shape) < 2 {
			return nil, fmt.Errorf("input %s is %s, want float matrices", name, a)
		}
		if *o, err = operandOf(n, name, a); err != nil {
			return nil, err
		}
	}
	if p.q.cols != p.k.rows || in[0].DType != in[1].DType {
		return nil, fmt.Errorf("inputs Q %s and K %s: types, or inner sizes %d and %d, differ", in[0], in[1],
			p.q.cols, p.k.rows)
	}
	scores, err := op.BroadcastShapes(append(slices.Clone(p.q.batch), int64(p.q.rows), 1),
		append(slices.Clone(p.k.batch), 1, int64(p.k.cols)))
	if err != nil {
		return nil, fmt.Errorf("inputs Q and K: leading %w", err)
	}
	if scores, err = p.masked(op.Opt(in, 3), scores); err != nil {
		return nil, err
	}
	// Of the masked scores: a mask may have more queries, keys or heads than Q and K, which broadcast to it.
	lead, rows, keys := scores[:len(scores)-2], scores[len(scores)-2], scores[len(scores)-1]
	if keys != int64(p.v.rows) {
		return nil, fmt.Errorf("input V %s has the wrong number of rows for %d keys", in[2], keys)
	}
	if p.batch, err = op.BroadcastShapes(lead, p.v.batch); err != nil {
		return nil, fmt.Errorf("scores and input V: leading %w", err)
	}
	p.Shape = attention.Shape{Queries: int(rows), Keys: int(keys), Size: p.q.cols, Value: p.v.cols}
	p.broadcastStrides()
	return p, p.result(n, in[2].DType)
}

// masked is the shape of the masked scores.
func (p *fusedAttention) masked(a *ir.Array, scores []int64) ([]int64, error) {
	if a == nil {
		return scores, nil
	}
	if !isFloat(a.DType) {
		return nil, fmt.Errorf("input mask is %s, want a float type", a)
	}
	shape, err := op.BroadcastShapes(scores, a.Shape)
	if err != nil {
		return nil, fmt.Errorf("scores and input mask: %w", err)
	}
	own := append(slices.Repeat([]int64{1}, max(2-len(a.Shape), 0)), a.Shape...)
	last, strides := len(own)-1, op.Strides(own)
	p.maskMatrix = operand{rows: int(own[last-1]), cols: int(own[last]), row: int(strides[last-1]),
		col: int(strides[last]), batch: own[:last-1], strides: strides[:last-1]}
	p.mask = &mask{Array: a, keys: int(shape[len(shape)-1])}
	return shape, nil
}

// broadcastStrides sets the stride of axes that broadcast along queries or keys to 0.
func (p *fusedAttention) broadcastStrides() {
	for _, m := range []struct {
		rows, cols int
		of         *operand
	}{{p.Queries, p.Size, &p.q}, {p.Size, p.Keys, &p.k}, {p.Queries, p.Keys, &p.maskMatrix}} {
		if m.of.rows < m.rows {
			m.of.row = 0
		}
		if m.of.cols < m.cols {
			m.of.col = 0
		}
	}
	if p.mask != nil {
		p.mask.query, p.mask.key = p.maskMatrix.row, p.maskMatrix.col
	}
}

// result is the transposed shape, and its strides.
func (p *fusedAttention) result(n *op.Node, dt ir.DType) error {
	shape := append(slices.Clone(p.batch), int64(p.Queries), int64(p.Value))
	perm := n.Ints("permY")
	if perm == nil {
		p.out, p.y = ir.Spec{DType: dt, Shape: shape}, op.Strides(shape)
		return p.out.Valid()
	}
	// The last axis stays the last: rows of the result are written by products, as contiguous elements.
	if !isPerm(perm, len(shape)) || int(perm[len(perm)-1]) != len(perm)-1 {
		return fmt.Errorf("invalid permutation of the result %v: %v", shape, perm)
	}
	p.out = ir.Spec{DType: dt, Shape: make([]int64, len(shape))}
	for i, from := range perm {
		p.out.Shape[i] = shape[from]
	}
	p.y = make([]int64, len(shape))
	// Axis i of the output is axis perm[i] of the result, so heads are written to their places directly.
	for i, stride := range op.Strides(p.out.Shape) {
		p.y[perm[i]] = stride
	}
	return p.out.Valid()
}

func fusedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := fusedOf(n, in)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{p.out}, nil
}

func fusedWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := fusedOf(n, in)
	if err != nil {
		return 0
	}
	s, out, count := &scratch{counts: true}, &ir.Array{DType: p.out.DType, Shape: p.out.Shape}, int(op.Product(p.batch))
	if p.double(in) {
		tensorsOf[float64](s, in, out)
		return s.used + attention.Work[float64](p.Shape, count, workers)
	}
	tensorsOf[float32](s, in, out)
	return s.used + attention.Work[float32](p.Shape, count, workers)
}

// double reports whether everything is computed in float64.
func (p *fusedAttention) double(in []*ir.Array) bool {
	return in[0].DType == ir.Double || in[2].DType == ir.Double
}

// tensorsOf assigns memory to values that are not of type T.
func tensorsOf[T attention.Float](s *scratch, in []*ir.Array, out *ir.Array) tensors[T] {
	return tensors[T]{q: load[T](s, in[0]), k: load[T](s, in[1]), v: load[T](s, in[2]), y: space[T](s, out)}
}

func runFused(c *op.Call) error {
	p, err := fusedOf(c.Node, c.In)
	if err != nil {
		return err
	}
	if p.double(c.In) {
		fusedIn[float64](p, c)
	} else {
		fusedIn[float32](p, c)
	}
	return nil
}

func fusedIn[T attention.Float](p *fusedAttention, c *op.Call) {
	s := &scratch{mem: c.Work}
	x := tensorsOf[T](s, c.In, c.Out[0])
	qs, ks, vs := places(p.batch, p.q.batch, p.q.strides), places(p.batch, p.k.batch, p.k.strides),
		places(p.batch, p.v.batch, p.v.strides)
	ms, ys := places(p.batch, p.maskMatrix.batch, p.maskMatrix.strides), places(p.batch, p.batch, p.y[:len(p.batch)])
	heads := make([]attention.Head[T], len(qs))
	for i := range heads {
		heads[i] = attention.Head[T]{
			Q: matrix(p.q, x.q, qs[i]), K: matrix(p.k, x.k, ks[i]).T(), V: matrix(p.v, x.v, vs[i]),
			Y: x.y[min(ys[i], len(x.y)):], Stride: int(p.y[len(p.batch)]),
		}
		if p.mask != nil {
			heads[i].Mask = maskAt[T](p.mask, ms[i])
		}
	}
	attention.Run(c.Pool, p.Shape, s.rest(), attention.Options[T]{Scale: T(c.Float("scale", 1))}, heads)
	store(c.Out[0], x.y)
}
