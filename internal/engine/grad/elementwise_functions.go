package grad

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// microsoft is the domain of ONNX Runtime's own operators.
const microsoft = "com.microsoft"

// functions are unary operators. The operators of package backward have the node's attributes.
var functions = func() []rule {
	rules := []rule{
		{Type: "Abs", Backward: of(input, func(t *Tape, dt ir.DType, x, dy *ir.Value) *ir.Value {
			return t.Op("Mul", []*ir.Value{dy, t.Op("Sign", []*ir.Value{x})})
		})},
		{Type: "Exp", Backward: of(output, func(t *Tape, dt ir.DType, y, dy *ir.Value) *ir.Value {
			return t.Op("Mul", []*ir.Value{dy, y})
		})},
		{Type: "Log", Backward: of(input, func(t *Tape, dt ir.DType, x, dy *ir.Value) *ir.Value {
			return t.Op("Div", []*ir.Value{dy, x})
		})},
		{Type: "Reciprocal", Backward: of(output, func(t *Tape, dt ir.DType, y, dy *ir.Value) *ir.Value {
			return t.Op("Neg", []*ir.Value{t.Op("Mul", []*ir.Value{t.Op("Mul", []*ir.Value{dy, y}), y})})
		})},
		{Type: "Sqrt", Backward: of(output, func(t *Tape, dt ir.DType, y, dy *ir.Value) *ir.Value {
			return t.Scale(t.Op("Div", []*ir.Value{dy, y}), dt, 0.5)
		})},
		{Type: "Sin", Backward: of(input, func(t *Tape, dt ir.DType, x, dy *ir.Value) *ir.Value {
			return t.Op("Mul", []*ir.Value{dy, t.Op("Cos", []*ir.Value{x})})
		})},
		{Type: "Cos", Backward: of(input, func(t *Tape, dt ir.DType, x, dy *ir.Value) *ir.Value {
			return t.Op("Neg", []*ir.Value{t.Op("Mul", []*ir.Value{dy, t.Op("Sin", []*ir.Value{x})})})
		})},
		{Type: "Sinh", Backward: of(input, func(t *Tape, dt ir.DType, x, dy *ir.Value) *ir.Value {
			return t.Op("Mul", []*ir.Value{dy, t.Op("Cosh", []*ir.Value{x})})
		})},
		{Type: "Cosh", Backward: of(input, func(t *Tape, dt ir.DType, x, dy *ir.Value) *ir.Value {
			return t.Op("Mul", []*ir.Value{dy, t.Op("Sinh", []*ir.Value{x})})
		})},
		{Type: "Clip", Backward: clip},
		{Type: "Gelu", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
			typ := "GeluGrad"
			if text(n, "approximate", "none") == "tanh" {
				typ = "GeluTanhGrad"
			}
			return t.Own(typ, 1, []*ir.Value{n.Input(0), dy[0]}), nil
		}},
		{Domain: microsoft, Type: "QuickGelu", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value,
			error) {
			return t.Own("SwishGrad", 1, []*ir.Value{n.Input(0), dy[0]},
				ir.FloatAttr("alpha", n.Float("alpha", 1.702))), nil
		}},
	}
	for _, typ := range []string{
		"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Elu", "Erf", "HardSigmoid", "HardSwish",
		"LeakyRelu", "Mish", "Relu", "Selu",
		"Shrink", "Sigmoid", "Softplus", "Softsign", "Swish", "Tan", "Tanh", "ThresholdedRelu",
	} {
		rules = append(rules, rule{Type: typ, Backward: byOperator(typ+"Grad", savedValue(typ))})
	}
	return rules
}()

// output and input select the value from which a derivative is computed.
func output(n *ir.Node) *ir.Value { return n.Outputs[0] }
func input(n *ir.Node) *ir.Value  { return n.Input(0) }

// savedValue selects the one that the table of operators states as saved.
func savedValue(typ string) choice {
	if operator.Lookup(ir.OpID{Type: typ}).Saves.Has(operator.SavesOutput) {
		return output
	}
	return input
}

type choice func(*ir.Node) *ir.Value

// of is the gradient that f computes from the selected value and the output's gradient.
func of(from choice, f func(t *Tape, dt ir.DType, v, dy *ir.Value) *ir.Value) gradient {
	return func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{f(t, t.DType(n.Outputs[0]), from(n), dy[0])}, nil
	}
}

// byOperator is the gradient by an operator of package backward. With a negative slope the sign of the output is
// ambiguous, and the derivative is computed from the input.
func byOperator(typ string, from choice) gradient {
	return func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		v := from(n)
		if alpha := n.Attr("alpha"); alpha != nil && alpha.F < 0 {
			switch n.Op.Type {
			case "LeakyRelu":
				v = n.Input(0)
			case "Celu", "Elu", "Selu", "ThresholdedRelu":
				return nil, fmt.Errorf("the gradient for a negative alpha of %v is not supported", alpha.F)
			}
		}
		return t.Own(typ, 1, []*ir.Value{v, dy[0]}, n.Attrs...), nil
	}
}

// clip passes the gradient where the output is between the bounds, and to a bound where the output equals it.
func clip(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	y, dx := n.Outputs[0], make([]*ir.Value, 3)
	dx[0] = t.Own("ClipGrad", 1, []*ir.Value{y, dy[0], n.Input(1), n.Input(2)}, n.Attrs...)[0]
	for i := 1; i < 3; i++ {
		if b := n.Input(i); t.Needs(b) {
			at := t.Op("Equal", []*ir.Value{y, b})
			dx[i] = sumToOperand(t, n, i, t.Op("Where", []*ir.Value{at, dy[0], t.Scalar(t.DType(y), 0)}))
		}
	}
	return dx, nil
}
