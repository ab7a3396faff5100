package recurrent

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// rnn: h = f(x·Wᵀ + h·Rᵀ + Wb + Rb).
var rnn = &kind{
	name: "RNN", gates: 1, activations: []string{"Tanh"},
	hidden: func(*op.Node) int { return 1 },
	step: func(s *direction, _ int, gates, h, _ []float32) {
		s.limit(gates)
		s.f[0].run(gates)
		copy(h, gates)
	},
}

// gru has the gates z (update), r (reset) and h (hidden):
//
//	z, r = f(x·Wᵀ + h·Rᵀ + Wb + Rb)
//	ĥ = g(x·Whᵀ + (r∘h)·Rhᵀ + Rbh + Wbh), or with linear_before_reset
//	ĥ = g(x·Whᵀ + r∘(h·Rhᵀ + Rbh) + Wbh)
//	h = (1 - z)∘ĥ + z∘h
var gru = &kind{
	name: "GRU", gates: 3, activations: []string{"Sigmoid", "Tanh"},
	hidden: func(*op.Node) int { return 2 },
	step: func(s *direction, n int, gates, h, _ []float32) {
		z, r, hidden := gates[:s.H], gates[s.H:2*s.H], gates[2*s.H:]
		more := s.more[n*s.H:][:s.H]
		if s.linear {
			if s.bias != nil {
				kernel.Add(more, more, s.bias[5*s.H:])
			}
			kernel.Mul(more, more, r)
		}
		kernel.Add(hidden, hidden, more)
		s.limit(hidden)
		s.f[1].run(hidden)
		for i := range h {
			h[i] = (1-z[i])*hidden[i] + z[i]*h[i]
		}
	},
}

// resetRow computes the gates z and r of a GRU, and the operand of the hidden gate's R: r∘h, or h itself with
// linear_before_reset.
func resetRow(s *direction, gates, h, reset []float32) {
	zr := gates[:2*s.H]
	s.limit(zr)
	s.f[0].run(zr)
	if s.linear {
		copy(reset, h)
		return
	}
	kernel.Mul(reset, zr[s.H:], h)
}

// lstm has the gates i (input), o (output), f (forget) and c (cell):
//
//	i, f = f(x·Wᵀ + h·Rᵀ + P∘c + Wb + Rb), f = 1 - i with input_forget
//	c = f∘c + i∘g(x·Wcᵀ + h·Rcᵀ + Wbc + Rbc)
//	o = f(x·Woᵀ + h·Roᵀ + Po∘c + Wbo + Rbo), with the new c
//	h = o∘h(c)
var lstm = &kind{
	name: "LSTM", gates: 4, activations: []string{"Sigmoid", "Tanh", "Tanh"}, cell: true,
	hidden: func(*op.Node) int { return 4 },
	step: func(s *direction, _ int, gates, h, c []float32) {
		i, o, f, g := gates[:s.H], gates[s.H:2*s.H], gates[2*s.H:3*s.H], gates[3*s.H:]
		s.peephole(i, c, 0)
		s.peephole(f, c, 2)
		s.limit(i)
		s.f[0].run(i)
		if s.coupled {
			kernel.ScalarSub(f, 1, i)
		} else {
			s.limit(f)
			s.f[0].run(f)
		}
		s.limit(g)
		s.f[1].run(g)
		kernel.Mul(f, f, c)
		kernel.Mul(g, g, i)
		kernel.Add(c, f, g)
		s.peephole(o, c, 1)
		s.limit(o)
		s.f[0].run(o)
		copy(h, c)
		s.f[2].run(h)
		kernel.Mul(h, h, o)
	},
}

// peephole adds the peephole term of a gate; part is its index in P.
func (s *direction) peephole(gate, c []float32, part int) {
	if s.peep == nil {
		return
	}
	for i, p := range s.peep[part*s.H:][:s.H] {
		gate[i] += p * c[i]
	}
}
