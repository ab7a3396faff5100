package grad

import "github.com/mcompress/mcompress/ir"

// rmsNormOf fuses x / sqrt(mean(x²) + ε) · γ into RMSNormalization (Zhang and Sennrich, 2019, arXiv:1910.07467); γ is
// optional. n is the division of x by the root, or its product with the inverse.
func rmsNormOf(t *Tape, n *ir.Node) bool {
	for i := range 2 {
		x := n.Input(i)
		root := rootInverse(t, n, n.Input(1-i))
		if root == nil || n.Op.Type == "Div" && i > 0 || x == nil {
			continue
		}
		eps, axis := meanSquare(t, root, x)
		if axis < 0 {
			continue
		}
		last, gamma := affineConsumer(t, n, "Mul", x, axis)
		if last == nil {
			last, gamma = n, t.Scalar(t.DType(x), 1)
		}
		b := inserter{t.Builder, last}
		replaceOutput(last, 0, b.op("RMSNormalization", []*ir.Value{x, gamma}, ir.IntAttr("axis", axis),
			ir.FloatAttr("epsilon", float32(eps))))
		return true
	}
	return false
}

// rootInverse returns v if n divides by sqrt(v) or multiplies by its inverse, the operand of.
func rootInverse(t *Tape, n *ir.Node, of *ir.Value) *ir.Value {
	p := of.Producer()
	if n.Op.Type == "Div" {
		return rootArgument(t, p)
	}
	switch {
	case is(p, "", "Reciprocal"):
		return rootArgument(t, p.Input(0).Producer())
	case is(p, "", "Div"):
		if one, ok := t.elements.scalar(p.Input(0)); ok && one == 1 {
			return rootArgument(t, p.Input(1).Producer())
		}
	case is(p, "", "Pow"):
		if e, ok := t.elements.scalar(p.Input(1)); ok && e == -0.5 {
			return p.Input(0)
		}
	}
	return nil
}

// rootArgument returns v if n is its square root.
func rootArgument(t *Tape, n *ir.Node) *ir.Value {
	switch {
	case is(n, "", "Sqrt"):
		return n.Input(0)
	case is(n, "", "Pow"):
		if e, ok := t.elements.scalar(n.Input(1)); ok && e == 0.5 {
			return n.Input(0)
		}
	}
	return nil
}

// meanSquare returns ε and the first of the trailing axes if v is the mean of x² over them plus ε; otherwise the axis
// is -1.
func meanSquare(t *Tape, v, x *ir.Value) (eps float64, axis int64) {
	add := v.Producer()
	if !is(add, "", "Add") {
		return 0, -1
	}
	for i := range 2 {
		eps, ok := t.elements.scalar(add.Input(i))
		mean := add.Input(1 - i).Producer()
		if ok && is(mean, "", "ReduceMean") && squareArgument(t, mean.Input(0).Producer()) == x {
			return eps, meanAxis(t, mean, mean.Input(0))
		}
	}
	return 0, -1
}
