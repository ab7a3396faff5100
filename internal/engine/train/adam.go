package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func checkAdam(n *op.Node, in []*ir.Array) error {
	if err := inputs(in, 5, 5); err != nil {
		return err
	}
	for i, name := range []string{"M", "V"} {
		if err := like(in[0], in, 2+i, name); err != nil {
			return err
		}
	}
	return checkBetas(n)
}

func checkBetas(n *op.Node) error {
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
	correction   float32 // 1/sqrt(1-beta2^t)
	rate         float32 // learning rate / (1-beta1^t)
	coupled      float32 // weight decay that is added to the gradient
	shrink       float32 // factor of decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2)
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
	return func(b batch) { s.apply(b.w, b.g, b.states[0], b.states[1], b.spare) }
}

// apply updates a block: kernel passes over a block in the first-level cache take half the time of one loop in Go. spare is scratch of the
// block's length.
func (s adamStep) apply(w, g, m, v, spare []float32) {
	kernel.Axpy(g, s.coupled, w)
	kernel.Sub(spare, g, m)
	kernel.Axpy(m, s.rest1, spare)
	kernel.MulScalar(spare, g, s.rest2)
	kernel.Mul(spare, spare, g)
	kernel.MulScalar(v, v, s.beta2)
	kernel.Add(v, v, spare)
	kernel.Sqrt(spare, v)
	kernel.ScaleShift(spare, spare, s.correction, s.epsilon)
	kernel.Div(spare, m, spare)
	kernel.MulScalar(w, w, s.shrink)
	kernel.Axpy(w, -s.rate, spare)
}
