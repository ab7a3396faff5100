package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

func checkBetas(n *op.Node, _ []*ir.Array) error {
	for _, name := range []string{"beta1", "beta2"} {
		if b := n.Float(name, 0.9); !(b >= 0 && b < 1) {
			return fmt.Errorf("attribute %s is %v, want 0 to below 1", name, b)
		}
	}
	if e := n.Float("epsilon", 1e-8); !(e >= 0) {
		return fmt.Errorf("attribute epsilon is %v, want 0 or more", e)
	}
	return nil
}

// An adamStep is the constants of one step of Adam (Kingma & Ba 2015, algorithm 1).
type adamStep struct {
	beta1, beta2 float32
	rest1, rest2 float32 // 1 - beta
	epsilon      float32
	correction   float32 // 1 over the root of 1-beta2^t
	rate         float32 // the learning rate over 1-beta1^t
	coupled      float32 // weight decay that is added to the gradient
	shrink       float32 // by what decoupled weight decay multiplies (Loshchilov & Hutter 2019, algorithm 2)
}

func newAdamStep(n *op.Node, h hyper) adamStep {
	beta1, beta2 := decimal(n.Float("beta1", 0.9)), decimal(n.Float("beta2", 0.999))
	t := max(h.step, 1)
	s := adamStep{
		beta1: float32(beta1), beta2: float32(beta2), rest1: float32(1 - beta1), rest2: float32(1 - beta2),
		epsilon:    n.Float("epsilon", 1e-8),
		correction: float32(1 / math.Sqrt(1-math.Pow(beta2, t))),
		rate:       float32(h.rate / (1 - math.Pow(beta1, t))),
		shrink:     1,
	}
	if n.Bool("decoupled", false) {
		s.shrink = float32(1 - h.rate*h.decay)
	} else {
		s.coupled = float32(h.decay)
	}
	return s
}

func adam(n *op.Node, h hyper) func(batch) {
	s := newAdamStep(n, h)
	return func(b batch) { s.apply(b.w, b.g, b.states[0], b.states[1]) }
}

// apply is one step. The conversions around products forbid a fused multiply-add.
func (s adamStep) apply(w, g, m, v []float32) {
	if s.coupled != 0 {
		kernel.Axpy(g, s.coupled, w)
	}
	g, m, v = g[:len(w)], m[:len(w)], v[:len(w)]
	for i, x := range w {
		d := g[i]
		mean := m[i] + float32(s.rest1*(d-m[i]))
		square := float32(s.beta2*v[i]) + float32(float32(s.rest2*d)*d)
		m[i], v[i] = mean, square
		root := float32(math.Sqrt(float64(square)))
		w[i] = float32(x*s.shrink) - float32(s.rate*mean)/(float32(root*s.correction)+s.epsilon)
	}
}
