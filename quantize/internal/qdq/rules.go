package qdq

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// An activationRule is how ONNX Runtime quantizes an operator without weights.
type activationRule struct {
	all       bool                // all inputs are activations; else the first one is
	sameScale bool                // elements are only moved or compared: the output has the scale of the input
	fits      func(*ir.Node) bool // nil for every such node
}

// activationRules are the operators between layers that ONNX Runtime computes in integers, according to its optimised graphs. Not
// included, as they are computed in float there: Sub, Div, Max, Min, Tanh, HardSigmoid, HardSwish, Elu, Pad, GlobalMaxPool, SpaceToDepth,
// ReduceMean, the normalizations and ConvTranspose; Softmax, whose 8-bit outputs are too coarse; Relu and Clip, which the
// quantized range replaces.
var activationRules = map[string]activationRule{
	"Add":               {all: true},
	"Mul":               {all: true},
	"Concat":            {all: true},
	"AveragePool":       {},
	"GlobalAveragePool": {},
	"LeakyRelu":         {},
	"Sigmoid":           {},

	"MaxPool":      {sameScale: true, fits: func(n *ir.Node) bool { return len(n.Outputs) == 1 }},
	"Resize":       {sameScale: true, fits: interpolates},
	"Reshape":      {sameScale: true},
	"Transpose":    {sameScale: true},
	"Flatten":      {sameScale: true},
	"Squeeze":      {sameScale: true},
	"Unsqueeze":    {sameScale: true},
	"Slice":        {sameScale: true},
	"Split":        {sameScale: true},
	"Gather":       {sameScale: true},
	"DepthToSpace": {sameScale: true},
	"Expand":       {sameScale: true},
	"Tile":         {sameScale: true},
	"ReduceMax":    {sameScale: true},
	"ReduceMin":    {sameScale: true},
}

// interpolates reports whether the outputs of a Resize are within the range of its input, which does not hold for cubic.
func interpolates(n *ir.Node) bool {
	a := n.Attr("mode")
	return a == nil || a.S == "nearest" || a.S == "linear"
}

// activationRuleOf is the rule for n, and its activations, nil if there is none.
func activationRuleOf(n *ir.Node) (rule activationRule, activations []*ir.Value) {
	rule, ok := activationRules[n.Op.Type]
	if !ok || !ir.DefaultDomain(n.Op.Domain) || rule.fits != nil && !rule.fits(n) || len(n.Inputs()) == 0 {
		return rule, nil
	}
	activations = n.Inputs()[:1]
	if rule.all {
		activations = n.Inputs()
	}
	if slices.ContainsFunc(activations, func(v *ir.Value) bool { return v == nil || v.Const != nil }) {
		return rule, nil
	}
	return rule, activations
}
