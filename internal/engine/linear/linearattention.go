package linear

import (
	"cmp"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// linearAttentions are ONNX's and com.microsoft's. Their state is a matrix per head, which every token updates and
// reads (Katharopoulos et al., "Transformers are RNNs", 2020; Yang et al., "Gated Delta Networks", 2024).
func linearAttentions() []op.Op {
	row := op.Op{Shape: linearAttentionShape, Run: runLinearAttention, Work: linearAttentionWork}
	return stateful(row, "LinearAttention")
}

// stateful is an operator that com.microsoft had before ONNX 27, with attributes that ONNX dropped.
func stateful(row op.Op, name string) []op.Op {
	old := row
	row.Since, old.Since = 27, 1
	return append(sameRow(row, []ir.OpID{{Type: name}}), sameRow(old, []ir.OpID{{Domain: microsoft, Type: name}})...)
}

// plainState is an error if an attribute that only com.microsoft's operator has is not at its default.
func plainState(n *op.Node) error {
	for _, a := range []struct {
		name  string
		usual int64
	}{{"state_window", 0}, {"channels_last", 0}, {"dilation", 1}, {"ndim", 1}} {
		if got := n.Int(a.name, a.usual); got != a.usual {
			return fmt.Errorf("attribute %s = %d is not supported", a.name, got)
		}
	}
	return nil
}

// A linearAttention is one node with the shapes of its inputs.
type linearAttention struct {
	batch, tokens, heads int // number of key and value heads
	shared               int // number of query heads per key head
	key, value           int // elements
	decays, betas        int // per token: of one head, or one per head; 0 for none
	state                ir.DType
}

// Inputs of LinearAttention.
const (
	inQuery = iota
	inKey
	inValue
	inState
	inDecay
	inBeta
)

// updateRule returns the inputs that the rule of node n requires.
func updateRule(n *op.Node) (decay, beta bool, err error) {
	switch rule := n.Text("update_rule", "gated_delta"); rule {
	case "linear":
		return false, false, nil
	case "gated":
		return true, false, nil
	case "delta":
		return false, true, nil
	case "gated_delta":
		return true, true, nil
	default:
		return false, false, fmt.Errorf("update_rule is %q, want linear, gated, delta or gated_delta", rule)
	}
}

func linearAttentionOf(n *op.Node, in []*ir.Array) (*linearAttention, error) {
	if err := cmp.Or(valid(in), plainState(n)); err != nil {
		return nil, err
	}
	decay, beta, err := updateRule(n)
	if err != nil {
		return nil, err
	}
	heads, all := n.Int("kv_num_heads", 0), n.Int("q_num_heads", 0)
	if heads <= 0 || all <= 0 || all%heads != 0 {
		return nil, fmt.Errorf("q_num_heads = %d is not a multiple of kv_num_heads = %d", all, heads)
	}
	var size [3]int64
	for i, name := range []string{"query", "key", "value"} {
		a, err := op.Arg(in, i, name)
		if err != nil {
			return nil, err
		}
		h := heads
		if i == inQuery {
			h = all
		}
		if len(a.Shape) != 3 || a.DType != in[0].DType || a.DType != ir.Float && !half(a.DType) ||
			a.Shape[0] != in[0].Shape[0] || a.Shape[1] != in[0].Shape[1] || a.Shape[2]%h != 0 {
			return nil, fmt.Errorf("input %s is %s, which does not match %d heads or query %s", name, a, h, in[0])
		}
		size[i] = a.Shape[2] / h
	}
	if size[0] != size[1] {
		return nil, fmt.Errorf("queries have %d elements, keys have %d", size[0], size[1])
	}
	p := &linearAttention{batch: int(in[0].Shape[0]), tokens: int(in[0].Shape[1]), heads: int(heads),
		shared: int(all / heads), key: int(size[1]), value: int(size[2]), state: in[0].DType}
	if s := op.Opt(in, inState); s != nil {
		if s.DType != ir.Float && !half(s.DType) ||
			(ir.Spec{DType: s.DType, Shape: p.stateShape()}).String() != s.String() {
			return nil, fmt.Errorf("input past_state is %s, want %v", s, p.stateShape())
		}
		p.state = s.DType
	}
	if p.decays, err = p.gate(in, inDecay, "decay", decay, heads, heads*size[1]); err != nil {
		return nil, err
	}
	p.betas, err = p.gate(in, inBeta, "beta", beta, heads, 1)
	return p, err
}

func (p *linearAttention) stateShape() []int64 {
	return []int64{int64(p.batch), int64(p.heads), int64(p.key), int64(p.value)}
}

// gate is the number of elements of decay or beta per token: one of two.
func (p *linearAttention) gate(in []*ir.Array, i int, name string, needed bool, sizes ...int64) (int, error) {
	a := op.Opt(in, i)
	if needed != (a != nil) {
		return 0, fmt.Errorf("input %s is present: %v, required by update_rule: %v", name, a != nil, needed)
	}
	if a == nil {
		return 0, nil
	}
	if a.DType != in[0].DType || len(a.Shape) != 3 || a.Shape[0] != int64(p.batch) || a.Shape[1] != int64(p.tokens) ||
		a.Shape[2] != sizes[0] && a.Shape[2] != sizes[1] {
		return 0, fmt.Errorf("input %s is %s, want [%d,%d,%d or %d]", name, a, p.batch, p.tokens, sizes[0], sizes[1])
	}
	return int(a.Shape[2]), nil
}

func linearAttentionShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := linearAttentionOf(n, in)
	if err != nil {
		return nil, err
	}
	return p.specs(in), nil
}

func (p *linearAttention) specs(in []*ir.Array) []ir.Spec {
	y := []int64{int64(p.batch), int64(p.tokens), int64(p.heads) * int64(p.shared) * int64(p.value)}
	return []ir.Spec{{DType: in[0].DType, Shape: y}, {DType: p.state, Shape: p.stateShape()}}
}

// recurrence is the memory of one run. All values are float32.
type recurrence struct {
	*linearAttention
	q, k, v, decay, beta, y, state []float32
	row                            []float32 // for each head of each batch: the state read at a key
	scale                          float32
}

func (p *linearAttention) layOut(s *scratch, in, out []*ir.Array) *recurrence {
	r := &recurrence{linearAttention: p, q: load[float32](s, in[inQuery]), k: load[float32](s, in[inKey]),
		v: load[float32](s, in[inValue])}
	if p.decays > 0 {
		r.decay = load[float32](s, in[inDecay])
	}
	if p.betas > 0 {
		r.beta = load[float32](s, in[inBeta])
	}
	r.y, r.state = space[float32](s, out[0]), space[float32](s, out[1])
	r.row = take[float32](s, int64(p.batch)*int64(p.heads)*int64(p.value))
	return r
}

func linearAttentionWork(n *op.Node, in []*ir.Array, _ int) int64 {
	p, err := linearAttentionOf(n, in)
	if err != nil {
		return 0
	}
	s := &scratch{counts: true}
	p.layOut(s, in, s.outputs(p.specs(in), consumedOutputs(n, p.specs(in))))
	return s.used
}

func runLinearAttention(c *op.Call) error {
	p, err := linearAttentionOf(c.Node, c.In)
	if err != nil {
		return err
	}
	s := &scratch{mem: c.Work}
	out := s.outputs(p.specs(c.In), c.Out)
	r := p.layOut(s, c.In, out)
	if r.scale = c.Float("scale", 0); r.scale == 0 {
		r.scale = float32(1 / math.Sqrt(float64(max(p.key, 1))))
	}
	r.init(op.Opt(c.In, inState))
	// Heads are independent; the tokens of a head follow each other, as each reads the state that the last one left.
	c.Pool.For(p.batch*p.heads, func(i int) {
		for t := range p.tokens {
			r.step(i/p.heads, i%p.heads, t)
		}
	})
	store(out[0], r.y)
	store(out[1], r.state)
	return nil
}

// init initializes the state from the past, or to zeros.
func (r *recurrence) init(past *ir.Array) {
	switch {
	case past == nil:
		clear(r.state)
	case past.DType == ir.Float:
		copy(r.state, ir.View[float32](past))
	default:
		widen(r.state, past)
	}
}

// step updates the state of a head with token t, and reads it with its queries:
//
//	S = exp(decay)·S;  S = S + key ⊗ beta·(value - Sᵀ·key);  y = scale·Sᵀ·query
func (r *recurrence) step(batch, head, t int) {
	i := batch*r.heads + head
	state, row := r.state[i*r.key*r.value:][:r.key*r.value], r.row[i*r.value:][:r.value]
	token := batch*r.tokens + t
	k, v := r.k[(token*r.heads+head)*r.key:][:r.key], r.v[(token*r.heads+head)*r.value:][:r.value]
	r.decayState(state, token, head)
	// The delta rule stores the error of what the state, after its decay and before the update, predicts for the key.
	if r.betas > 0 {
		beta := r.beta[token*r.betas+head%r.betas]
		r.read(row, state, k)
		kernel.Sub(row, v, row)
		kernel.MulScalar(row, row, beta)
		v = row
	}
	for d, x := range k {
		kernel.Axpy(state[d*r.value:][:r.value], x, v)
	}
	for g := range r.shared {
		at := (token*r.heads+head)*r.shared + g
		y := r.y[at*r.value:][:r.value]
		r.read(y, state, r.q[at*r.key:][:r.key])
		kernel.MulScalar(y, y, r.scale)
	}
}

// decayState multiplies the state by the decay: all of it, or each row.
func (r *recurrence) decayState(state []float32, token, head int) {
	switch r.decays {
	case 0:
	case r.heads:
		kernel.MulScalar(state, state, exp32(r.decay[token*r.heads+head]))
	default:
		for d := range r.key {
			row := state[d*r.value:][:r.value]
			kernel.MulScalar(row, row, exp32(r.decay[(token*r.heads+head)*r.key+d]))
		}
	}
}

// read is Sᵀ·x.
func (r *recurrence) read(y, state, x []float32) {
	clear(y)
	for d, a := range x {
		kernel.Axpy(y, a, state[d*r.value:][:r.value])
	}
}

func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }
