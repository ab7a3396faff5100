package distill

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// An optimizerGraph adds the nodes of an optimizer to a graph.
type optimizerGraph struct {
	settings     *settings
	graph        *grad.Builder
	feeds        map[string]*ir.Array // arrays of parameters by the names of inputs
	hyper        *ir.Value
	hyperNoDecay *ir.Value   // hyper without weight decay
	squareSums   []*ir.Value // of each gradient
}

func newOptimizerGraph(s *settings, b *grad.Builder) *optimizerGraph {
	return &optimizerGraph{
		settings: s, graph: b, feeds: map[string]*ir.Array{},
		hyper: b.Input("hyper", ir.Float, 4), hyperNoDecay: b.Input("hyper", ir.Float, 4),
	}
}

// clip limits the norm of all gradients together.
func (u *optimizerGraph) clip(gradients []*ir.Value) {
	// One norm of all gradients together, as PyTorch's clip_grad_norm_: clipping each weight by itself would change the
	// direction of the step. All gradients are live until it is known, which is why clipping is no default.
	squares := u.graph.Own("SumSquares", 1, gradients)
	limit := ir.FloatAttr("max_norm", float32(u.settings.Clip))
	u.hyper = u.graph.Own("ClipFactor", 1, []*ir.Value{u.hyper, squares[0]}, limit)[0]
	u.hyperNoDecay = u.graph.Own("ClipFactor", 1, []*ir.Value{u.hyperNoDecay, squares[0]}, limit)[0]
}

// weight adds the input for p's weight.
func (u *optimizerGraph) weight(p *parameter) *ir.Value {
	in := u.graph.Input(p.name, p.array.DType, p.array.Shape...)
	u.feeds[in.Name] = p.array
	return in
}

// update adds the update of p's weight w by its gradient g.
func (u *optimizerGraph) update(p *parameter, w, g *ir.Value) {
	o := u.settings.chosenOptimizer()
	in := []*ir.Value{w, g}
	for i, s := range p.states {
		state := u.graph.Input(fmt.Sprintf("%s.%d", p.name, i), s.DType, s.Shape...)
		u.feeds[state.Name] = s
		in = append(in, state)
	}
	// Biases and the vectors of normalizations do not decay.
	hyper := u.hyperNoDecay
	if p.decays {
		hyper = u.hyper
	}
	attrs := o.attrs
	if p.pruned {
		// All weights share the list of the optimizer: without capacity, append copies it.
		attrs = append(attrs[:len(attrs):len(attrs)], ir.IntAttr("keep_zeros", 1))
	}
	// Max-norm constraint (Srivastava et al., Dropout, 2014): after the update, of the weights into each unit.
	if u.settings.MaxNorm > 0 && len(p.array.Shape) > 1 {
		attrs = append(attrs[:len(attrs):len(attrs)], ir.FloatAttr("max_norm", float32(u.settings.MaxNorm)),
			ir.IntAttr("norm_axis", p.units.axis), ir.IntAttr("norm_blocks", p.units.blocks))
	}
	sum := u.graph.Own(o.op, 1, append(in, hyper), attrs...)[0]
	sum.Producer().Name = "update of " + p.name
	u.squareSums = append(u.squareSums, sum)
}

// squareSum returns the sum of the squares of all gradients.
func (u *optimizerGraph) squareSum() *ir.Value {
	if len(u.squareSums) == 1 {
		return u.squareSums[0]
	}
	return u.graph.Op("Sum", u.squareSums)
}
