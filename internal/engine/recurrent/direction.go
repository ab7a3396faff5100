package recurrent

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A direction is one direction of a layer during a run.
type direction struct {
	side
	c       *op.Call
	packed  *weights
	f       []function // the activations
	clip    float32
	coupled bool // LSTM: the forget gate is 1 minus the input gate
	linear  bool // GRU: the reset gate applies after the product with R

	inputs []float32 // X·Wᵀ + biases, [T·N, gates·H]
	gates  []float32 // of one step, [N, gates·H]
	h, c0  []float32 // states, [N, H]
	reset  []float32 // the GRU's operand of its hidden gate's R, [N, H]
	more   []float32 // product with it, [N, H]
	bias   []float32 // [2, gates·H]; nil for none
	peep   []float32 // LSTM's P, [3, H]; nil for none
	work   []byte    // of the products
}

// direction is direction d with its own scratch memory.
func (l *layer) direction(c *op.Call, work []byte, packed *weights, d int) (*direction, error) {
	s := &direction{side: side{l, d}, c: c, packed: packed, clip: c.Float("clip", 0),
		coupled: c.Bool("input_forget", false), linear: l.linearBeforeReset(c.Node)}
	var err error
	if s.f, err = l.functions(c.Node, d); err != nil {
		return nil, err
	}
	floats := kernel.Words[float32](work)
	cut := func(n int) []float32 {
		x := floats[:n]
		floats = floats[aligned(n):]
		return x
	}
	inputs, gates, state, _ := l.scratch(c.Pool.Workers())
	s.inputs, s.gates = cut(inputs), cut(gates)
	s.h, s.c0, s.reset, s.more = cut(state), cut(state), cut(state), cut(state)
	s.work = work[4*(aligned(inputs)+aligned(gates)+4*aligned(state)):]
	if b := c.Opt(inB); b != nil {
		n := 2 * l.kind.gates * l.H
		s.bias = ir.View[float32](b)[d*n:][:n]
	}
	if p := c.Opt(inP); p != nil && l.cell {
		s.peep = ir.View[float32](p)[d*3*l.H:][:3*l.H]
	}
	s.initState(s.h, c.Opt(inH))
	if l.cell {
		s.initState(s.c0, c.Opt(inC))
	}
	return s, nil
}

// initState fills a state from its initial value, or with zeros.
func (s *direction) initState(state []float32, from *ir.Array) {
	if from == nil {
		clear(state)
		return
	}
	x := ir.View[float32](from)
	for n := range s.N {
		copy(state[n*s.H:][:s.H], x[s.stateAt(n):])
	}
}

func (s *direction) run() {
	g := s.kind.gates * s.H
	s.project(g)
	if s.c.HasConsumer(0) {
		s.clearOutput()
	}
	// Sums with the state depend on the step before: a product for each step, of all sequences together.
	for i := range s.T {
		for n := range s.N {
			if t := s.stepOf(i, n); t >= 0 {
				copy(s.gates[n*g:][:g], s.inputs[s.inputAt(t, n)*g:])
			}
		}
		// Also of sequences that have ended: their states are not changed, and the product is not used.
		s.packed.before[s.d].multiply(product{pool: s.c.Pool, work: s.work, a: s.h, rows: s.N, c: s.gates, stride: g,
			accumulate: true})
		s.advance(i, g)
	}
	s.finish()
}

// project multiplies all of X by W at once, and adds the biases that do not depend on the step.
func (s *direction) project(g int) {
	p := product{pool: s.c.Pool, work: s.work, a: ir.View[float32](s.c.In[inX]), rows: s.T * s.N, c: s.inputs,
		stride: g}
	if s.bias != nil {
		sum := make([]float32, g)
		copy(sum, s.bias[:g])
		inner := g
		if s.linear {
			inner = 2 * s.H // Rb of the hidden gate is added after the product with R
		}
		kernel.Add(sum[:inner], sum[:inner], s.bias[g:][:inner])
		p.bias = sum
	}
	s.packed.w[s.d].multiply(p)
}

// advance computes the new states of all sequences that have not ended.
func (s *direction) advance(i, g int) {
	s.multiplyReset(g)
	for n := range s.N {
		t := s.stepOf(i, n)
		if t < 0 {
			continue
		}
		h := s.h[n*s.H:][:s.H]
		s.step(s, n, s.gates[n*g:][:g], h, s.c0[n*s.H:][:s.H])
		if s.c.HasConsumer(0) {
			copy(ir.View[float32](s.c.Out[0])[s.outputAt(t, n):], h)
		}
	}
}

// multiplyReset computes the product with the last part of R for kinds whose step needs it.
func (s *direction) multiplyReset(g int) {
	if s.packed.after == nil {
		return
	}
	for n := range s.N {
		resetRow(s, s.gates[n*g:][:g], s.h[n*s.H:][:s.H], s.reset[n*s.H:][:s.H])
	}
	s.packed.after[s.d].multiply(product{pool: s.c.Pool, work: s.work, a: s.reset, rows: s.N, c: s.more, stride: s.H})
}

func (s *direction) clearOutput() {
	y := ir.View[float32](s.c.Out[0])
	for t := range s.T {
		for n := range s.N {
			clear(y[s.outputAt(t, n):][:s.H])
		}
	}
}

// finish writes the last states.
func (s *direction) finish() {
	for k, state := range [][]float32{s.h, s.c0} {
		if !s.c.HasConsumer(k + 1) {
			continue
		}
		y := ir.View[float32](s.c.Out[k+1])
		for n := range s.N {
			copy(y[s.stateAt(n):], state[n*s.H:][:s.H])
		}
	}
}

// limit clips the inputs of activations.
func (s *direction) limit(x []float32) {
	if s.clip > 0 {
		kernel.Clip(x, x, -s.clip, s.clip)
	}
}
