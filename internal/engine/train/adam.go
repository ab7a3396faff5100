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

func newAdamStep(n *op.Node, h hyper) *kernel.AdamStep {
	beta1, beta2 := decimal(n.Float("beta1", 0.9)), decimal(n.Float("beta2", 0.999))
	// Bias correction (Kingma and Ba 2015, section 3) divides by 0 at step 0; steps count from 1.
	t := max(h.step, 1)
	s := &kernel.AdamStep{
		Rest1: float32(1 - beta1), Rest2: float32(1 - beta2), Beta2: float32(beta2),
		Epsilon:    n.Float("epsilon", 1e-8),
		Correction: float32(1 / math.Sqrt(1-math.Pow(beta2, t))),
		Rate:       -float32(h.rate / (1 - math.Pow(beta1, t))),
		Shrink:     1,
	}
	if n.Bool("decoupled", false) {
		// AdamW (Loshchilov and Hutter 2019): the decay is no part of the gradient, so that the second moment does not
		// divide it.
		s.Shrink = float32(1 - h.rate*h.decay)
	} else {
		s.Coupled = float32(h.decay)
	}
	return s
}

func adam(n *op.Node, h hyper) func(batch) {
	s := newAdamStep(n, h)
	return func(b batch) { s.Apply(b.w, b.g, b.states[0], b.states[1]) }
}
