package distill

import (
	"math"
	"math/rand/v2"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// reinit initializes all parameters randomly: weights of rank 2 and more uniformly within sqrt(6 / fan-in), for rectified activations (He et al.,
// Delving Deep into Rectifiers, 2015, section 2.2), scales of normalizations with 1, biases with 0.
func (ps *parameters) reinit(tape *grad.Tape, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x696e6974))
	for _, p := range tape.Params {
		w := ir.View[float32](ps.byName[p.Name].array)
		ps.byName[p.Name].pruned = false
		if len(p.Tensor.Shape) < 2 {
			for i := range w {
				w[i] = initialValue(p)
			}
			continue
		}
		bound := math.Sqrt(6 / float64(fanIn(p)))
		for i := range w {
			w[i] = float32((2*r.Float64() - 1) * bound)
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
		switch u.Node.Op.Type {
		case "BatchNormalization", "BatchNormTrain", "BatchNormPoolTrain", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization":
			if u.Index == 1 {
				return 1
			}
		case "Mul", "Div":
			return 1
		case "PRelu":
			return 0.25
		}
	}
	return 0
}

// fanIn returns the number of inputs per output of a layer.
func fanIn(p *grad.Param) int64 {
	elems, s := p.Tensor.Elems(), p.Tensor.Shape
	for _, u := range p.Value.Uses() {
		if u.Node == nil {
			continue
		}
		switch {
		case u.Node.Op.Type == "Conv" || u.Node.Op.Type == "Gemm" && u.Node.Int("transB", 0) != 0:
			return max(1, elems/s[0])
		case u.Node.Op.Type == "Gather":
			return max(1, s[len(s)-1])
		}
	}
	return max(1, elems/s[len(s)-1])
}
