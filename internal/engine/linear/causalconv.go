package linear

import (
	"cmp"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// causalConvs are causal depthwise convolutions; the last elements of the input are the state of the next call.
func causalConvs() []op.Op {
	return stateful(op.Op{Shape: causalConvShape, Run: runCausalConv, Work: causalConvWork}, "CausalConvWithState")
}

// A causalConv is one node with the shapes of its inputs.
type causalConv struct {
	batch, channels, length int
	back                    int // number of preceding elements in a kernel's window
	silu                    bool
}

func causalConvOf(n *op.Node, in []*ir.Array) (*causalConv, error) {
	if err := cmp.Or(valid(in), plainState(n)); err != nil {
		return nil, err
	}
	x, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	w, err := op.Arg(in, 1, "weight")
	if err != nil {
		return nil, err
	}
	if x.DType != ir.Float && !half(x.DType) || len(x.Shape) != 3 {
		return nil, fmt.Errorf("input %s is not a float tensor of three axes", x)
	}
	if len(w.Shape) != 3 || w.Shape[0] != x.Shape[1] || w.Shape[1] != 1 || w.Shape[2] < 1 {
		return nil, fmt.Errorf("input weight is %s for %d channels", w, x.Shape[1])
	}
	p := &causalConv{batch: int(x.Shape[0]), channels: int(x.Shape[1]), length: int(x.Shape[2]),
		back: int(w.Shape[2]) - 1}
	shapes := [][]int64{x.Shape, w.Shape, {x.Shape[1]}, p.state()}
	for i, name := range []string{"input", "weight", "bias", "past_state"} {
		if a := op.Opt(in, i); a != nil && a.String() != (ir.Spec{DType: x.DType, Shape: shapes[i]}).String() {
			return nil, fmt.Errorf("input %s is %s, want %s%v", name, a, x.DType, shapes[i])
		}
	}
	switch act := n.Text("activation", "none"); act {
	case "none":
	case "silu", "swish":
		p.silu = true
	default:
		return nil, fmt.Errorf("activation is %q, want none, silu or swish", act)
	}
	return p, nil
}

func (p *causalConv) state() []int64 {
	return []int64{int64(p.batch), int64(p.channels), int64(p.back)}
}

func causalConvShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := causalConvOf(n, in)
	if err != nil {
		return nil, err
	}
	return p.specs(in), nil
}

func (p *causalConv) specs(in []*ir.Array) []ir.Spec {
	return []ir.Spec{in[0].Spec(), {DType: in[0].DType, Shape: p.state()}}
}

// channelRows is the memory of one run, all of float32. Rows are channels.
type channelRows struct {
	*causalConv
	x, weight, bias, past, y, state []float32
}

func (p *causalConv) layOut(s *scratch, in, out []*ir.Array) *channelRows {
	r := &channelRows{causalConv: p, x: load[float32](s, in[0]), weight: load[float32](s, in[1])}
	if b := op.Opt(in, 2); b != nil {
		r.bias = load[float32](s, b)
	}
	if past := op.Opt(in, 3); past != nil {
		r.past = load[float32](s, past)
	}
	r.y, r.state = space[float32](s, out[0]), space[float32](s, out[1])
	return r
}

func causalConvWork(n *op.Node, in []*ir.Array, _ int) int64 {
	p, err := causalConvOf(n, in)
	if err != nil {
		return 0
	}
	s := &scratch{counts: true}
	p.layOut(s, in, s.outputs(p.specs(in), consumedOutputs(n, p.specs(in))))
	return s.used
}

func runCausalConv(c *op.Call) error {
	p, err := causalConvOf(c.Node, c.In)
	if err != nil {
		return err
	}
	s := &scratch{mem: c.Work}
	out := s.outputs(p.specs(c.In), c.Out)
	r := p.layOut(s, c.In, out)
	c.Pool.Rows(p.batch*p.channels, max(1, (1<<14)/max(p.length*(p.back+1), 1)), func(from, to int) {
		for i := from; i < to; i++ {
			r.convolve(i)
			r.keep(i)
		}
	})
	store(out[0], r.y)
	store(out[1], r.state)
	return nil
}

// convolve computes row i. The first element is preceded by those of the past, or by zeros.
func (r *channelRows) convolve(i int) {
	ch := i % r.channels
	x, y, w := r.x[i*r.length:][:r.length], r.y[i*r.length:][:r.length], r.weight[ch*(r.back+1):][:r.back+1]
	clear(y)
	if r.bias != nil {
		kernel.AddScalar(y, y, r.bias[ch])
	}
	for j, a := range w {
		lag := r.back - j // y[t] depends on x[t-lag]
		// The first outputs depend on elements of the past, which precede those of x.
		before := min(lag, r.length)
		if r.past != nil {
			kernel.Axpy(y[:before], a, r.past[i*r.back+j:][:before])
		}
		kernel.Axpy(y[before:], a, x[:r.length-before])
	}
	if r.silu {
		kernel.Silu(y, y)
	}
}

// keep stores the last elements of the past and of row i.
func (r *channelRows) keep(i int) {
	// Shorter inputs than the state leave elements of the past in it, which move to its front.
	state := r.state[i*r.back:][:r.back]
	fresh := min(r.back, r.length)
	old := state[:r.back-fresh]
	clear(old)
	if r.past != nil {
		copy(old, r.past[i*r.back+fresh:])
	}
	copy(state[len(old):], r.x[i*r.length+r.length-fresh:])
}
