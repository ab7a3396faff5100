package linear

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// attentions are ONNX's Attention. Version 24 added nonpad_kv_seqlen, 25 windows.
func attentions() []op.Op {
	return []op.Op{{Type: "Attention", Since: 23, Shape: attentionShape, Run: runAttention, Work: attentionWork}}
}

// An onnxAttention is one ONNX Attention node with the shapes of its inputs.
type onnxAttention struct {
	multihead
	past int64
	out  []ir.Spec // Y, present_key, present_value, qk_matmul_output
	mask *mask
}

// Inputs of Attention.
const (
	inQ = iota
	inK
	inV
	inMask
	inPastKey
	inPastValue
	inLengths
)

func attentionOf(n *op.Node, in []*ir.Array) (*onnxAttention, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	var x [3][4]int64 // Q, K, V as [batch, heads, tokens, size]
	for i, name := range []string{"Q", "K", "V"} {
		a, err := op.Arg(in, i, name)
		if err == nil {
			x[i], err = headsOf(n, name, a, in[0])
		}
		if err != nil {
			return nil, err
		}
	}
	q, k, v := x[0], x[1], x[2]
	if q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || k[2] != v[2] || q[3] != k[3] {
		return nil, fmt.Errorf("shapes of inputs Q %s, K %s and V %s do not match", in[0], in[1], in[2])
	}
	if k[1] == 0 || q[1]%k[1] != 0 {
		return nil, fmt.Errorf("%d query heads are not a multiple of %d key heads", q[1], k[1])
	}
	if in[0].DType != in[1].DType {
		return nil, fmt.Errorf("inputs Q and K have different types %s and %s", in[0].DType, in[1].DType)
	}
	p := &onnxAttention{}
	var err error
	if p.past, err = pastOf(in, k, v); err != nil {
		return nil, err
	}
	total := p.past + k[2]
	y := []int64{q[0], q[1], q[2], v[3]}
	if len(in[0].Shape) == 3 {
		y = []int64{q[0], q[2], q[1] * v[3]}
	}
	p.out = []ir.Spec{
		{DType: in[0].DType, Shape: y},
		{DType: in[1].DType, Shape: []int64{k[0], k[1], total, k[3]}},
		{DType: in[2].DType, Shape: []int64{v[0], v[1], total, v[3]}},
		{DType: in[0].DType, Shape: []int64{q[0], q[1], q[2], total}},
	}
	p.multihead = multihead{
		Shape: attention.Shape{Queries: int(q[2]), Keys: int(total), Size: int(q[3]), Value: int(v[3]),
			Causal: n.Bool("is_causal", false)},
		batch: int(q[0]), heads: int(q[1]), queriesPerKey: int(q[1] / k[1]),
	}
	p.q, p.k, p.v = layoutOf(in[0], q), layoutOf(in[1], k), layoutOf(in[2], v)
	p.y = layoutOf(in[0], [4]int64{q[0], q[1], q[2], v[3]})
	if a := op.Opt(in, inMask); a != nil {
		if p.mask, err = maskOf(a, [4]int64{q[0], q[1], q[2], total}, true); err != nil {
			return nil, err
		}
	}
	if a := op.Opt(in, inLengths); a != nil {
		if p.past > 0 || a.DType != ir.Int64 || len(a.Shape) != 1 || a.Shape[0] != q[0] {
			return nil, fmt.Errorf("input nonpad_kv_seqlen is %s for %d batches, or combined with past_key", a, q[0])
		}
	}
	return p, nil
}

// headsOf is the shape of input Q, K or V as [batch, heads, tokens, size].
func headsOf(n *op.Node, name string, a, q *ir.Array) (s [4]int64, err error) {
	if !isFloat(a.DType) {
		return s, fmt.Errorf("input %s is %s, want a float type", name, a)
	}
	if len(a.Shape) != len(q.Shape) {
		return s, fmt.Errorf("inputs Q %s and %s %s have different ranks", q, name, a)
	}
	if len(a.Shape) == 4 {
		return [4]int64(a.Shape), nil
	}
	if len(a.Shape) != 3 {
		return s, fmt.Errorf("input %s is %s, want 3 or 4 axes", name, a)
	}
	attr := "kv_num_heads"
	if name == "Q" {
		attr = "q_num_heads"
	}
	heads := n.Int(attr, 0)
	if heads <= 0 || a.Shape[2]%heads != 0 {
		return s, fmt.Errorf("input %s %s does not match %s = %d heads", name, a, attr, heads)
	}
	return [4]int64{a.Shape[0], heads, a.Shape[1], a.Shape[2] / heads}, nil
}

// layoutOf is the layout of the heads of a, which have shape s.
func layoutOf(a *ir.Array, s [4]int64) headLayout {
	if len(a.Shape) == 3 {
		return packed(int(s[1]), int(s[2]), int(s[3]))
	}
	return split(int(s[1]), int(s[2]), int(s[3]))
}

// pastOf is the number of tokens in past_key and past_value.
func pastOf(in []*ir.Array, k, v [4]int64) (int64, error) {
	key, value := op.Opt(in, inPastKey), op.Opt(in, inPastValue)
	if key == nil && value == nil {
		return 0, nil
	}
	if key == nil || value == nil {
		return 0, fmt.Errorf("one of past_key and past_value is missing")
	}
	fits := func(a *ir.Array, like *ir.Array, s [4]int64) bool {
		return a.DType == like.DType && len(a.Shape) == 4 && a.Shape[0] == s[0] && a.Shape[1] == s[1] &&
			a.Shape[3] == s[3]
	}
	if !fits(key, in[1], k) || !fits(value, in[2], v) || key.Shape[2] != value.Shape[2] {
		return 0, fmt.Errorf("past_key %s and past_value %s do not match K %s and V %s", key, value, in[1], in[2])
	}
	return key.Shape[2], nil
}

func attentionShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := attentionOf(n, in)
	if err != nil {
		return nil, err
	}
	if stage := n.Int("qk_matmul_output_mode", 0); stage < 0 || stage > 3 {
		return nil, fmt.Errorf("qk_matmul_output_mode is %d, want 0 to 3", stage)
	}
	if left, right := windowOf(n); left < -1 || right < -1 {
		return nil, fmt.Errorf("left window size is %d and right window size is %d; -1 means unbounded", left, right)
	}
	return p.out, precision(n)
}

func attentionWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := attentionOf(n, in)
	if err != nil {
		return 0
	}
	return p.work(in, consumedOutputs(n, p.out), workers)
}

// work is the size of run's scratch memory in bytes.
func (p *onnxAttention) work(in, out []*ir.Array, workers int) int64 {
	s := &scratch{counts: true}
	out = append(out, nil, nil, nil)[:4]
	if p.double(in) {
		layOut[float64](p, s, in, out)
		return s.used + workOf[float64](&p.multihead, workers)
	}
	layOut[float32](p, s, in, out)
	return s.used + workOf[float32](&p.multihead, workers)
}

// double reports whether everything is computed in float64.
func (p *onnxAttention) double(in []*ir.Array) bool {
	return in[inQ].DType == ir.Double || in[inV].DType == ir.Double
}

func runAttention(c *op.Call) error {
	p, err := attentionOf(c.Node, c.In)
	if err != nil {
		return err
	}
	if p.keyRange, err = p.window(c.Node, op.Opt(c.In, inLengths)); err != nil {
		return err
	}
	p.run(c)
	return nil
}

func (p *onnxAttention) run(c *op.Call) {
	out := make([]*ir.Array, len(p.out))
	copy(out, c.Out)
	if p.double(c.In) {
		compute[float64](p, c, out)
	} else {
		compute[float32](p, c, out)
	}
}

func compute[T attention.Float](p *onnxAttention, c *op.Call, out []*ir.Array) {
	s := &scratch{mem: c.Work}
	x := layOut[T](p, s, c.In, out)
	if p.mask != nil {
		x.mask = func(batch, head int) attention.Mask[T] { return maskFor[T](p.mask, batch, head) }
	}
	o := attention.Options[T]{
		Scale: T(c.Float("scale", float32(1/math.Sqrt(float64(max(p.Size, 1)))))), Cap: T(c.Float("softcap", 0)),
		Zeros: true,
		Stage: attention.Stage(c.Int("qk_matmul_output_mode", 0)),
	}
	if ir.DType(c.Int("softmax_precision", 0)) == ir.Double {
		o.Softmax = attention.Softmax64[T]
	}
	attend(c.Pool, &p.multihead, s.rest(), o, x)
	store(out[0], x.y)
	if out[3] != nil {
		store(out[3], x.probe)
	}
}

// layOut concatenates past and new keys and values, and assigns memory to values that are not of type T.
func layOut[T attention.Float](p *onnxAttention, s *scratch, in, out []*ir.Array) tensors[T] {
	k, v := in[inK], in[inV]
	if p.past > 0 || out[1] != nil {
		k, p.k = present(s, out[1], p.out[1], op.Opt(in, inPastKey), k, p.k)
	}
	if p.past > 0 || out[2] != nil {
		v, p.v = present(s, out[2], p.out[2], op.Opt(in, inPastValue), v, p.v)
	}
	copy(out, s.outputs(p.out[:1], out[:1]))
	x := tensors[T]{q: load[T](s, in[inQ]), k: load[T](s, k), v: load[T](s, v), y: space[T](s, out[0])}
	if out[3] != nil {
		x.probe = space[T](s, out[3])
	}
	return x
}

// present concatenates past and new keys, or values: in out, or in scratch memory if the output has no consumer.
func present(s *scratch, out *ir.Array, spec ir.Spec, past, a *ir.Array, at headLayout) (*ir.Array, headLayout) {
	// The concatenation is needed for the products, even if the output is not.
	if out == nil {
		out = s.array(spec)
	}
	if !s.counts {
		joinHeads(out, past, a, at)
	}
	d := spec.Shape
	return out, split(int(d[1]), int(d[2]), int(d[3]))
}

// joinHeads writes past, if any, and a, whose heads have the layout at, to out. All have the shape [batch, heads,
// tokens, size], up to the order of axes.
func joinHeads(out, past, a *ir.Array, at headLayout) {
	width := int(out.DType.Bits() / 8)
	heads, tokens, row := int(out.Shape[1]), int(out.Shape[2]), int(out.Shape[3])*width
	before := 0
	if past != nil {
		before = int(past.Shape[2])
	}
	for i := range int(out.Shape[0]) * heads {
		dst := out.Data[i*tokens*row:][:tokens*row]
		if before > 0 {
			copy(dst, past.Data[i*before*row:][:before*row])
		}
		for t := range tokens - before {
			from := (at.at(i/heads, i%heads) + t*at.token) * width
			copy(dst[(before+t)*row:][:row], a.Data[from:])
		}
	}
}

// windowOf is the number of keys to the left and right of its own position that a query attends to; -1 for all.
func windowOf(n *op.Node) (left, right int64) {
	return n.Int("left_window_size", -1), n.Int("right_window_size", -1)
}

// window is the range of keys that each query attends to, by attributes and lengths. The position of a query is counted
// from the first key: it follows the past ones, or is among the last ones of the given length.
func (p *onnxAttention) window(n *op.Node, lengths *ir.Array) (func(batch int) attention.KeyRange, error) {
	left, right := windowOf(n)
	if n.Bool("is_causal", false) {
		right = 0
	}
	if left < 0 && right < 0 && lengths == nil {
		return nil, nil
	}
	var valid []int64
	if lengths != nil {
		valid = ir.View[int64](lengths)
	}
	for b, l := range valid {
		if l < 0 || l > int64(p.Keys) {
			return nil, fmt.Errorf("nonpad_kv_seqlen[%d] is %d of %d keys", b, l, p.Keys)
		}
	}
	return func(batch int) attention.KeyRange {
		keys, offset := p.Keys, int(p.past)
		// Queries are the last ones of the valid keys, as the new tokens are part of them.
		if valid != nil {
			keys, offset = int(valid[batch]), int(valid[batch])-p.Queries
		}
		return within(keys, offset, left, right)
	}, nil
}

// within is the range of keys around each query's position, which is offset plus its index; a negative left or right is
// unbounded.
func within(keys, offset int, left, right int64) attention.KeyRange {
	return func(query int) (from, to int) {
		at := offset + query
		to = keys
		if left >= 0 {
			// Bounded, so that the sum does not overflow.
			from = at - int(min(left, 1<<40))
		}
		if right >= 0 {
			to = min(to, at+int(min(right, 1<<40))+1)
		}
		return from, to
	}
}
