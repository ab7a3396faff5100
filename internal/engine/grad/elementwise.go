package grad

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// elementwise are arithmetic operators with broadcasting. A constant operand has no gradient, so that its factors are
// not stored.
var elementwise = []rule{
	{Type: "Add", Backward: linearIn(1, 1)},
	{Type: "Sub", Backward: linearIn(1, -1)},
	{Type: "Neg", Backward: linearIn(-1)},
	{Type: "Identity", Backward: linearIn(1)},
	{Type: "Dropout", Backward: dropout},
	{Type: "Sum", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return sameGradient(t, n, dy[0]), nil
	}},
	{Type: "Mean", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return sameGradient(t, n, t.Scale(dy[0], t.DType(n.Outputs[0]), 1/float64(len(n.Inputs())))), nil
	}},
	{Type: "Mul", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return operandGradients(t, n, func(i int) *ir.Value {
			return t.Op("Mul",
				[]*ir.Value{dy[0], n.Input(1 - i)})
		}), nil
	}},
	{Type: "Div", Backward: div},
	{Type: "Pow", Backward: pow},
	{Type: "Max", Backward: firstEqualOperand},
	{Type: "Min", Backward: firstEqualOperand},
	{Type: "Where", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		zero := t.Scalar(t.DType(n.Outputs[0]), 0)
		return operandGradients(t, n, func(i int) *ir.Value {
			if i == 1 {
				return t.Op("Where", []*ir.Value{n.Input(0), dy[0], zero})
			}
			return t.Op("Where", []*ir.Value{n.Input(0), zero, dy[0]})
		}), nil
	}},
	{Type: "PRelu", Backward: prelu},
	{Type: "Cast", Backward: cast},
	{Type: "CastLike", Backward: cast},
	{Type: "Affine", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{t.Scale(dy[0], t.DType(n.Outputs[0]), float64(n.Float("alpha", 1)))}, nil
	}},
}

// sumToOperand returns the gradient of operand i of n from dv, which has the shape of n's output.
func sumToOperand(t *Tape, n *ir.Node, i int, dv *ir.Value) *ir.Value {
	if !t.Needs(n.Input(i)) {
		return nil
	}
	return t.SumTo(dv, t.Shape(n.Outputs[0]), t.Shape(n.Input(i)))
}

// operandGradients returns the gradients of all operands of n that need one.
func operandGradients(t *Tape, n *ir.Node, dv func(i int) *ir.Value) []*ir.Value {
	dx := make([]*ir.Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		if t.Needs(v) {
			dx[i] = sumToOperand(t, n, i, dv(i))
		}
	}
	return dx
}

// sameGradient returns the same gradient for every operand.
func sameGradient(t *Tape, n *ir.Node, dv *ir.Value) []*ir.Value {
	return operandGradients(t, n, func(int) *ir.Value { return dv })
}

// linearIn is the gradient of a signed sum of operands.
func linearIn(signs ...int) gradient {
	return func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		dx := make([]*ir.Value, len(n.Inputs()))
		for i := range min(len(signs), len(dx)) {
			if dx[i] = sumToOperand(t, n, i, dy[0]); dx[i] != nil && signs[i] < 0 {
				dx[i] = t.Op("Neg", []*ir.Value{dx[i]})
			}
		}
		return dx, nil
	}
}

func cast(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	return []*ir.Value{t.Cast(dy[0], t.DType(n.Input(0)))}, nil
}

// dropout supports inference mode only.
func dropout(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	if mode := n.Input(2); mode != nil {
		if a := t.elements[mode]; a == nil || len(a.Data) != 1 || a.Data[0] != 0 {
			return nil, fmt.Errorf("random dropout is not supported; set its input training_mode to a constant false")
		}
	}
	if dy[0] == nil {
		return nil, nil
	}
	return []*ir.Value{dy[0]}, nil
}

// div: with g = dY/B, the gradient of A is g and that of B is -g·Y.
func div(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	g := t.Op("Div", []*ir.Value{dy[0], n.Input(1)})
	return operandGradients(t, n, func(i int) *ir.Value {
		if i == 0 {
			return g
		}
		return t.Op("Neg", []*ir.Value{t.Op("Mul", []*ir.Value{g, n.Outputs[0]})})
	}), nil
}

// pow: the gradient of the base is dY·p·x^(p-1), that of the exponent dY·y·ln(x), and 0 where x is 0.
func pow(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	x, y, dt := n.Input(0), n.Outputs[0], t.DType(n.Outputs[0])
	p := n.Input(1)
	if t.DType(p) != dt {
		p = t.Cast(p, dt)
	}
	return operandGradients(t, n, func(i int) *ir.Value {
		if i == 1 {
			zero := t.Scalar(dt, 0)
			ln := t.Op("Where", []*ir.Value{t.Op("Equal", []*ir.Value{x, zero}), zero, t.Op("Log", []*ir.Value{x})})
			return t.Op("Mul", []*ir.Value{dy[0], t.Op("Mul", []*ir.Value{y, ln})})
		}
		if e, ok := t.elements.scalar(n.Input(1)); ok {
			return powerGradient(t, dy[0], x, dt, e)
		}
		below := t.Op("Pow", []*ir.Value{x, t.Op("Sub", []*ir.Value{p, t.Scalar(dt, 1)})})
		return t.Op("Mul", []*ir.Value{dy[0], t.Op("Mul", []*ir.Value{p, below})})
	}), nil
}

// powerGradient is dy·e·x^(e-1) with a known exponent.
func powerGradient(t *Tape, dy, x *ir.Value, dt ir.DType, e float64) *ir.Value {
	switch e {
	case 0:
		return t.Scale(dy, dt, 0)
	case 1:
		return dy
	case 2:
		return t.Scale(t.Op("Mul", []*ir.Value{dy, x}), dt, 2)
	}
	below := t.Op("Pow", []*ir.Value{x, t.Scalar(dt, e-1)})
	return t.Scale(t.Op("Mul", []*ir.Value{dy, below}), dt, e)
}

// firstEqualOperand passes each element of the gradient to the first operand that equals the result there.
func firstEqualOperand(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	if len(n.Inputs()) == 1 {
		return dy[:1], nil
	}
	var taken *ir.Value
	zero, masks := t.Scalar(t.DType(n.Outputs[0]), 0), make([]*ir.Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		is := t.Op("Equal", []*ir.Value{v, n.Outputs[0]})
		masks[i] = is
		if taken == nil {
			taken = is
			continue
		}
		// Where operands are equal the gradient passes once: to each of them it would count several times.
		masks[i] = t.Op("And", []*ir.Value{is, t.Op("Not", []*ir.Value{taken})})
		taken = t.Op("Or", []*ir.Value{taken, is})
	}
	return operandGradients(t, n, func(i int) *ir.Value { return t.Op("Where", []*ir.Value{masks[i], dy[0], zero}) }),
		nil
}

// prelu: the slope has a gradient where x is negative.
func prelu(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	x, zero := n.Input(0), t.Scalar(t.DType(n.Outputs[0]), 0)
	return operandGradients(t, n, func(i int) *ir.Value {
		if i == 1 {
			return t.Op("Mul", []*ir.Value{dy[0], t.Op("Min", []*ir.Value{x, zero})})
		}
		scaled := t.Op("Mul", []*ir.Value{dy[0], n.Input(1)})
		return t.Op("Where", []*ir.Value{t.Op("Less", []*ir.Value{x, zero}), scaled, dy[0]})
	}), nil
}
