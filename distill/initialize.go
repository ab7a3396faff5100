package distill

import (
	"math"
	"math/rand/v2"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// reinit initializes all parameters randomly: weights of rank 2 and more uniformly within sqrt(6 / fan-in), for
// rectified activations (He et al., Delving Deep into Rectifiers, 2015, section 2.2), scales of normalizations with 1,
// biases with 0. Pruned elements stay 0.
func (ps *parameters) reinit(tape *grad.Tape, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x696e6974))
	for _, p := range tape.Params {
		of := ps.byName[p.Name]
		w := ir.View[float32](of.array)
		if len(p.Tensor.Shape) < 2 {
			for i := range w {
				w[i] = initialValue(p)
			}
			continue
		}
		bound := math.Sqrt(6 / float64(fanIn(p)))
		for i := range w {
			// Drawn for pruned elements, too, so that the others have the same values whatever is pruned.
			if x := float32((2*r.Float64() - 1) * bound); !of.pruned || w[i] != 0 {
				w[i] = x
			}
		}
	}
	for _, s := range ps.stats {
		s.reinit()
	}
}

// initialValue returns the initial value of the elements of a vector parameter.
func initialValue(p *grad.Param) float32 {
	for _, u := range p.Value.Uses() {
		if u.Node == nil {
			continue
		}
		f := operator.Of(u.Node)
		switch role := f.Input(u.Index).Role; {
		case role == operator.Gain, f.Affine == operator.Factor:
			return 1
		case role == operator.Slope:
			return 0.25
		}
	}
	return 0
}

// fanIn returns the number of inputs per output of a layer.
func fanIn(p *grad.Param) int64 {
	shape := p.Tensor.Shape
	if axes, ok := layerAxes(p.Value, len(shape)); ok {
		return max(1, axes.FanIn(shape))
	}
	return max(1, p.Tensor.Elems()/shape[len(shape)-1])
}
