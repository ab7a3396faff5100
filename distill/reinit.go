package distill

import (
	"math"
	"math/rand/v2"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// reinit gives weights random values: uniform ones within sqrt(6 / fan-in) for weights of rank 2 and more, whose inputs are
// rectified (He et al., Delving Deep into Rectifiers, 2015, section 2.2), ones for the scales of normalizations, zeros for biases.
func reinit(tape *grad.Tape, vars map[string]*variable, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x696e6974))
	for _, p := range tape.Params {
		w := ir.View[float32](vars[p.Name].array)
		vars[p.Name].pruned = false
		if len(p.Tensor.Shape) < 2 {
			for i := range w {
				w[i] = start(p)
			}
			continue
		}
		bound := math.Sqrt(6 / float64(fanIn(p)))
		for i := range w {
			w[i] = float32((2*r.Float64() - 1) * bound)
		}
	}
}

// start is what a vector begins with: scales with 1.
func start(p *grad.Param) float32 {
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

// fanIn is the number of inputs that one output of a layer is a sum of.
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

// newLike is an array of zeros of a's type.
func newLike(a *ir.Array) *ir.Array { return ir.NewArray(a.DType, a.Shape...) }
