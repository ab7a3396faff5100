package train

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// straightThrough is the straight-through estimator (Bengio et al. 2013, arXiv:1308.3432, section 4): the result is Q,
// which is X quantized, and the gradient is that of X.
func straightThrough() []op.Op {
	return []op.Op{{Type: "StraightThrough", Shape: straightShape, View: true}}
}

func straightShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	q, err := tensor(in, 0, "Q", ir.Float)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{q.Spec()}, like(q, in, 1, "X")
}
