package train

import (
	"errors"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func checkMomentum(n *op.Node, in []*ir.Array) error {
	if err := inputs(in, 3, 4); err != nil {
		return err
	}
	held := len(in) == 4 && in[2] != nil
	if held {
		if err := like(in[0], in, 2, "M"); err != nil {
			return err
		}
	}
	switch m := n.Float("momentum", 0); {
	case !(m >= 0 && m < 1):
		return errors.New("attribute momentum must be 0 to below 1")
	case m == 0 && n.Bool("nesterov", false):
		return errors.New("attribute nesterov requires momentum")
	case m > 0 && !held:
		return errors.New("attribute momentum requires the state M")
	}
	return nil
}

// sgd is stochastic gradient descent as in PyTorch, without dampening: d = g + decay·w,
// m = momentum·m + d, w -= rate·m; with nesterov w -= rate·(d + momentum·m).
func sgd(n *op.Node, h hyper) func(batch) {
	momentum, nesterov := n.Float("momentum", 0), n.Bool("nesterov", false)
	return func(b batch) {
		d, m := b.g, b.states[0]
		kernel.Axpy(d, float32(h.decay), b.w)
		if momentum > 0 {
			kernel.MulScalar(m, m, momentum)
			kernel.Add(m, m, d)
			if nesterov {
				kernel.Axpy(d, momentum, m)
			} else {
				d = m
			}
		}
		kernel.Axpy(b.w, float32(-h.rate), d)
	}
}
