package qdq

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// conditions are those of integer kernels that not every node meets.
var conditions = map[string]func(*ir.Node) bool{
	"MaxPool": func(n *ir.Node) bool { return len(n.Outputs) == 1 },
	"Resize":  interpolates,
}

// interpolates reports whether the outputs of a Resize are within the range of its input, which does not hold for
// cubic.
func interpolates(n *ir.Node) bool {
	a := n.Attr("mode")
	return a == nil || a.S == "nearest" || a.S == "linear"
}

// isInteger reports whether ONNX Runtime computes n, which has no weights, in integers. The 8-bit outputs of Softmax
// are too coarse; Relu and Clip are replaced by the quantized range.
func isInteger(n *ir.Node) bool {
	f, condition := operator.Of(n), conditions[operator.Name(n.Op)]
	return f.IntegerKernel && !f.Distribution && (condition == nil || condition(n))
}

// keepsScale reports whether the output of n, in integers, has the scale of the input: elements are moved, compared or
// interpolated.
func keepsScale(n *ir.Node) bool {
	f := operator.Of(n)
	moved := f.Move.Moves() && !f.Variadic || f.Move == operator.Compares
	return f.IntegerKernel && (moved || n.Op.Is("Resize"))
}

// activationsOf are the quantized inputs of n, nil if ONNX Runtime computes it in float.
func activationsOf(n *ir.Node) []*ir.Value {
	if !isInteger(n) || len(n.Inputs()) == 0 {
		return nil
	}
	activations := n.Inputs()[:1]
	if f := operator.Of(n); f.Variadic || f.Elementwise == operator.Broadcasts {
		activations = n.Inputs()
	}
	if slices.ContainsFunc(activations, func(v *ir.Value) bool { return v == nil || v.Const != nil }) {
		return nil
	}
	return activations
}
