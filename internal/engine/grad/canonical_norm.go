package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// groupNorm rewrites to the normalization of each group of channels as a row. Below opset 21 scale and bias are per
// group.
func groupNorm(t *Tape, n *ir.Node) bool {
	x, groups := t.Shape(n.Input(0)), n.Int("num_groups", 0)
	if len(x) < 2 || groups < 1 || x[1]%groups != 0 {
		return false
	}
	b := inserter{t.Builder, n}
	one := t.Scalar(t.DType(n.Input(0)), 1)
	rows := b.reshape(n.Input(0), x[0]*groups, -1)
	// A neutral scale: that of LayerNormalization is one number per element of a row, the group's one per channel.
	rows = b.op("LayerNormalization", []*ir.Value{rows, one}, ir.IntAttr("axis", 1),
		ir.FloatAttr("epsilon", n.Float("epsilon", 1e-5)))
	y := b.reshape(rows, x...)
	for i, typ := range []string{"Mul", "Add"} {
		p := n.Input(i + 1)
		if t.Shape(p)[0] != x[1] {
			each := b.op("Expand", []*ir.Value{b.reshape(p, groups, 1), t.Ints(groups, x[1]/groups)})
			p = b.reshape(each, x[1])
		}
		channels := append([]int64{x[1]}, slices.Repeat([]int64{1}, len(x)-2)...)
		y = b.op(typ, []*ir.Value{y, b.reshape(p, channels...)})
	}
	replaceOutput(n, 0, y)
	return true
}

// layerNormOf fuses (x - mean(x)) / sqrt(mean((x - mean(x))²) + ε) · γ + β into LayerNormalization; β is optional. n is
// the Div.
func layerNormOf(t *Tape, n *ir.Node) bool {
	centered := n.Input(0).Producer()
	x, axis := centeredInput(t, centered)
	if x == nil {
		return false
	}
	eps, ok := epsilonOf(t, n.Input(1).Producer(), x, axis)
	if !ok {
		return false
	}
	scale, gamma := affineConsumer(t, n, "Mul", x, axis)
	if scale == nil {
		return false
	}
	last, in := scale, []*ir.Value{x, gamma}
	if shift, beta := affineConsumer(t, scale, "Add", x, axis); shift != nil {
		last, in = shift, append(in, beta)
	}
	b := inserter{t.Builder, last}
	replaceOutput(last, 0, b.op("LayerNormalization", in, ir.IntAttr("axis", axis),
		ir.FloatAttr("epsilon", float32(eps))))
	return true
}

// centeredInput returns x if n is x minus its mean over the axes from axis on.
func centeredInput(t *Tape, n *ir.Node) (x *ir.Value, axis int64) {
	if !is(n, "", "Sub") {
		return nil, 0
	}
	x = n.Input(0)
	if axis = meanAxis(t, n.Input(1).Producer(), x); axis < 0 {
		return nil, 0
	}
	return x, axis
}

// meanAxis returns the first of the trailing axes over which n is the mean of x; -1 if n is something else.
func meanAxis(t *Tape, n *ir.Node, x *ir.Value) int64 {
	if !is(n, "", "ReduceMean") || n.Input(0) != x || n.Int("keepdims", 1) != 1 {
		return -1
	}
	axes, given, known := t.elements.list(n, "axes", 1)
	rank := len(t.Shape(x))
	if !given || !known || len(axes) == 0 {
		return -1
	}
	axes = slices.Clone(axes)
	for i := range axes {
		axes[i] = fromFront(axes[i], rank)
	}
	slices.Sort(axes)
	for i, axis := range axes {
		if axis != int64(rank-len(axes)+i) {
			return -1
		}
	}
	return axes[0]
}

// epsilonOf returns ε if n is the square root of the mean of (x - mean(x))² plus ε.
func epsilonOf(t *Tape, n *ir.Node, x *ir.Value, axis int64) (float64, bool) {
	if !is(n, "", "Sqrt") {
		return 0, false
	}
	add := n.Input(0).Producer()
	if !is(add, "", "Add") {
		return 0, false
	}
	for i := range 2 {
		eps, ok := t.elements.scalar(add.Input(i))
		mean := add.Input(1 - i).Producer()
		if !ok || !is(mean, "", "ReduceMean") {
			continue
		}
		d := squareArgument(t, mean.Input(0).Producer())
		if d == nil || meanAxis(t, mean, mean.Input(0)) != axis {
			return 0, false
		}
		of, from := centeredInput(t, d.Producer())
		return eps, of == x && from == axis
	}
	return 0, false
}

// squareArgument returns d if n is d² or d·d.
func squareArgument(t *Tape, n *ir.Node) *ir.Value {
	switch {
	case is(n, "", "Mul") && n.Input(0) == n.Input(1):
		return n.Input(0)
	case is(n, "", "Pow"):
		if e, ok := t.elements.scalar(n.Input(1)); ok && e == 2 {
			return n.Input(0)
		}
	}
	return nil
}

// affineConsumer returns the only consumer of n's result if it is of that type, with its other operand, which has the
// shape of the axes of x from axis on.
func affineConsumer(t *Tape, n *ir.Node, typ string, x *ir.Value, axis int64) (*ir.Node, *ir.Value) {
	next := n.Outputs[0].OnlyConsumer()
	if !is(next, "", typ) {
		return nil, nil
	}
	other := next.Input(0)
	if other == n.Outputs[0] {
		other = next.Input(1)
	}
	if !slices.Equal(t.Shape(other), t.Shape(x)[axis:]) {
		return nil, nil
	}
	return next, other
}
