package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// trainableRoles are the roles of inputs that are trained.
var trainableRoles = []operator.Role{
	operator.Matrix, operator.Filter, operator.Gates, operator.Table, operator.Bias, operator.InputBias,
	operator.Gain, operator.Shift, operator.Slope,
}

// parameterInputs are the inputs of n that hold parameters: those of an operator with a gradient. Its domain counts:
// inputs 1 and 2 of com.microsoft's Attention are weights, those of ai.onnx's are keys and values.
func parameterInputs(n *ir.Node) []int {
	rewritten := func(r rewrite) bool { return is(n, r.domain, r.typ) }
	if lookup(n.Op) == nil && !slices.ContainsFunc(rewrites[0], rewritten) {
		return nil
	}
	return operator.Of(n).With(trainableRoles...)
}

// Trainable returns the constants of m that are parameters: floating-point constants at the inputs of operators that
// hold weights. train selects among them by name; nil selects all.
func Trainable(m *ir.Model, train func(name string) bool) map[*ir.Value]bool {
	params := map[*ir.Value]bool{}
	for g := range m.Graphs() {
		nodes, err := g.Order()
		if err != nil {
			continue // New reports the error
		}
		learned := map[*ir.Value]bool{}
		for _, n := range nodes {
			weights := weightIndices(n, learned)
			for _, i := range weights {
				if c := weightConst(n.Input(i)); c != nil && (train == nil || train(c.Name)) {
					params[c] = true
				}
			}
			if len(weights) > 0 || slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool { return learned[v] }) {
				for _, v := range n.Outputs {
					learned[v] = true
				}
			}
		}
	}
	return params
}

// weightIndices returns the inputs of n that hold weights. The constant operand of an affine operator is one if it is a
// vector along one axis, after a layer with weights: before that it normalizes the model's inputs.
func weightIndices(n *ir.Node, learned map[*ir.Value]bool) []int {
	var out []int
	for _, i := range parameterInputs(n) {
		if weightConst(n.Input(i)) != nil {
			out = append(out, i)
		}
	}
	if len(n.Inputs()) != 2 || operator.Of(n).Affine == operator.NotAffine {
		return out
	}
	for i := range 2 {
		if c := weightConst(n.Input(i)); c != nil && vector(c.Const.Shape) && learned[n.Input(1-i)] {
			out = append(out, i)
		}
	}
	return out
}

// weightConst returns the floating-point constant of which v is a view or transpose; nil if there is none.
func weightConst(v *ir.Value) *ir.Value {
	// PyTorch exports the weight of a Linear before a Transpose, and older exporters flatten it: the constant is
	// trained in the layout in which it is stored.
	for v != nil && v.Const == nil {
		n := v.Producer()
		if n == nil || operator.Of(n).Move != operator.View && !n.Op.Is("Transpose") {
			return nil
		}
		v = n.Input(0)
	}
	if v == nil || !(v.Const.DType == ir.Float || v.Const.DType == ir.Double) {
		return nil
	}
	return v
}

// vector reports whether a shape has exactly one axis longer than 1.
func vector(shape []int64) bool {
	long := 0
	for _, n := range shape {
		if n > 1 {
			long++
		}
	}
	return long == 1
}
