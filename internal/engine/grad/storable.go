package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Storable returns the stored results of type Float and of more than minBytes, in order, that another form may replace:
// first results of nodes, which the backward pass consumes only after a while. Results that are consumed soon, such as
// those of the last layers, would be live in both forms.
func (a *Activations) Storable(minBytes int64) []*ir.Value {
	forward, at := a.forwardSet(), a.positions()
	return slices.DeleteFunc(a.Stored(), func(v *ir.Value) bool {
		return a.DType(v) != ir.Float || a.Bytes(v) <= minBytes || v != v.Producer().Outputs[0] ||
			at[earliest(usesOutside(v, forward), at)]-a.lastPosition(v, at, forward) <= minIdle
	})
}

// lastPosition returns the position of the last forward node that consumes v or a view of it, or that computes it.
func (a *Activations) lastPosition(v *ir.Value, at map[*ir.Node]int, forward map[*ir.Node]bool) int {
	last := at[v.Producer()]
	for _, u := range v.Uses() {
		if u.Node == nil || !forward[u.Node] {
			continue
		}
		last = max(last, at[u.Node])
		if isView(u.Node) && u.Index == 0 {
			last = max(last, a.lastPosition(u.Node.Outputs[0], at, forward))
		}
	}
	return last
}

// tolerant are operators of gradients whose result is bounded by their operands.
var tolerant = []string{
	"ConvGrad", "ConvTransposeGrad", "BatchNormGrad", "BatchNormPoolGrad", "BatchNormTrain", "LayerNormGrad",
	"SoftmaxGrad", "AttentionGrad",
	"ReluGrad", "LeakyReluGrad", "ClipGrad", "HardSigmoidGrad", "ThresholdedReluGrad", "HardSwishGrad", "GeluGrad",
	"GeluTanhGrad", "SwishGrad",
	"MishGrad", "SigmoidGrad", "TanhGrad", "SoftplusGrad", "EluGrad", "SeluGrad", "CeluGrad",
}

// Quantizable returns the values of Storable that only products, normalizations and activations of the backward pass
// consume: their gradients tolerate values of 8 bits, unlike those of quotients, logarithms and comparisons.
func (a *Activations) Quantizable(minBytes int64) []*ir.Value {
	forward := a.forwardSet()
	return slices.DeleteFunc(a.Storable(minBytes), func(v *ir.Value) bool { return !isTolerated(v, forward) })
}

// isTolerated reports whether all consumers of v outside the forward graph, and those of its copies with other axes,
// are tolerant.
func isTolerated(v *ir.Value, forward map[*ir.Node]bool) bool {
	return !slices.ContainsFunc(usesOutside(v, forward), func(u ir.Use) bool {
		if is(u.Node, "", "Reshape", "Transpose") {
			return !isTolerated(u.Node.Outputs[0], forward)
		}
		return !is(u.Node, own, tolerant...) && !is(u.Node, "", "MatMul", "Gemm", "Mul") &&
			!is(u.Node, microsoft, "FusedMatMul")
	})
}
