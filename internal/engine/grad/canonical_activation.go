package grad

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// activationOf fuses x·Sigmoid(βx) and x/(1+e⁻ˣ) into Swish, x·Tanh(Softplus(x)) into Mish, and x·Clip(x+3, 0, 6)/6
// into HardSwish: their backward pass stores x alone. n is the last Mul or Div. Results that others consume are
// unchanged.
func activationOf(t *Tape, n *ir.Node) bool {
	if x := n.Input(0); n.Op.Type == "Div" && isLogistic(t, n.Input(1), n, x) {
		replaceOutput(n, 0, inserter{t.Builder, n}.op("Swish", []*ir.Value{x}))
		return true
	}
	factor, rest := scaledProduct(t, n)
	if len(rest) != 2 {
		return false
	}
	for i, x := range rest {
		if typ, attrs := gatedBy(t, x, rest[1-i], factor); typ != "" &&
			// A constant of more axes than x would broadcast the result, which the fused operator does not.
			slices.Equal(t.Shape(x), t.Shape(n.Outputs[0])) {
			replaceOutput(n, 0, inserter{t.Builder, n}.op(typ, []*ir.Value{x}, attrs...))
			return true
		}
	}
	return false
}

// scaledProduct is constantFactor of n, or of the product that n divides by a constant.
func scaledProduct(t *Tape, n *ir.Node) (constant float64, rest []*ir.Value) {
	if n.Op.Type == "Mul" {
		return constantFactor(t, n)
	}
	c, ok := t.elements.scalar(n.Input(1))
	product := n.Input(0).Producer()
	if !ok || !is(product, "", "Mul") || n.Input(0).OnlyConsumer() != n {
		return 1, nil
	}
	constant, rest = constantFactor(t, product)
	return constant / c, rest
}

// gatedBy returns the operator that computes factor·x·y, "" if there is none.
func gatedBy(t *Tape, x, y *ir.Value, factor float64) (typ string, attrs []*ir.Attr) {
	p := y.Producer()
	if p == nil || y.OnlyConsumer() == nil {
		return "", nil
	}
	if f, ok := clippedOf(t, y, x); ok && f.times(factor).near(clipFunction{1. / 6, 1. / 2, 0, 1}) {
		return "HardSwish", nil
	}
	if math.Abs(factor-1) > 1e-6 {
		return "", nil
	}
	if isWrittenOutSigmoid(t, p, x) {
		return "Swish", nil
	}
	if f, ok := clippedOf(t, p.Input(0), x); ok && is(p, "", "Sigmoid") && f.near(noClip(f.slope)) {
		return "Swish", []*ir.Attr{ir.FloatAttr("alpha", float32(f.slope))}
	}
	if is(p, "", "Tanh") && p.Input(0).OnlyConsumer() == p && isSoftplus(t, p.Input(0).Producer(), x) {
		return "Mish", nil
	}
	return "", nil
}

// isWrittenOutSigmoid reports whether n is 1/(1+e⁻ˣ).
func isWrittenOutSigmoid(t *Tape, n *ir.Node, x *ir.Value) bool {
	if is(n, "", "Reciprocal") {
		return isLogistic(t, n.Input(0), n, x)
	}
	one, ok := t.elements.scalar(n.Input(0))
	return ok && one == 1 && is(n, "", "Div") && isLogistic(t, n.Input(1), n, x)
}

// isLogistic reports whether v is 1+e⁻ˣ, which n alone consumes.
func isLogistic(t *Tape, v *ir.Value, n *ir.Node, x *ir.Value) bool {
	exp := expPlusOne(t, v, n)
	if exp == nil || !is(exp.Input(0).Producer(), "", "Neg") {
		return false
	}
	neg := exp.Input(0).Producer()
	return exp.Input(0).OnlyConsumer() == exp && neg.Input(0) == x
}

// expPlusOne returns the node Exp if v, which n alone consumes, is 1+eᶻ, and nil otherwise.
func expPlusOne(t *Tape, v *ir.Value, n *ir.Node) *ir.Node {
	sum := v.Producer()
	if !is(sum, "", "Add") || v.OnlyConsumer() != n {
		return nil
	}
	for i := range 2 {
		exp := sum.Input(i)
		if one, ok := t.elements.scalar(sum.Input(1 - i)); ok && one == 1 && is(exp.Producer(), "", "Exp") &&
			exp.OnlyConsumer() == sum {
			return exp.Producer()
		}
	}
	return nil
}

// isSoftplus reports whether n is Softplus(x), or ln(1+eˣ).
func isSoftplus(t *Tape, n *ir.Node, x *ir.Value) bool {
	if is(n, "", "Softplus") {
		return n.Input(0) == x
	}
	if !is(n, "", "Log") {
		return false
	}
	exp := expPlusOne(t, n.Input(0), n)
	return exp != nil && exp.Input(0) == x
}

// clipFunction is the function min(max(slope·x+shift, lo), hi), with a slope above 0.
type clipFunction struct{ slope, shift, lo, hi float64 }

func noClip(slope float64) clipFunction { return clipFunction{slope, 0, math.Inf(-1), math.Inf(1)} }

func (f clipFunction) times(c float64) clipFunction {
	return clipFunction{c * f.slope, c * f.shift, c * f.lo, c * f.hi}
}

func (f clipFunction) plus(c float64) clipFunction {
	return clipFunction{f.slope, f.shift + c, f.lo + c, f.hi + c}
}

func (f clipFunction) clip(lo, hi float64) clipFunction {
	return clipFunction{f.slope, f.shift, min(max(f.lo, lo), hi), min(max(f.hi, lo), hi)}
}

// near reports whether the constants are equal but for rounding.
func (f clipFunction) near(g clipFunction) bool {
	// Constants such as 1/6 are stored as float32 or float16 and multiplied in the exporter's order. Infinite bounds
	// are equal only by ==, as their difference is NaN.
	near := func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-5 }
	return near(f.slope, g.slope) && near(f.shift, g.shift) && near(f.lo, g.lo) && near(f.hi, g.hi)
}

// clippedOf returns v as a function of x, through nodes whose results have no other consumer.
func clippedOf(t *Tape, v, x *ir.Value) (clipFunction, bool) {
	if v == x {
		return noClip(1), true
	}
	n := v.Producer()
	if n == nil || v.OnlyConsumer() == nil {
		return clipFunction{}, false
	}
	step, inner := clippedStep(t, n)
	if step == nil {
		return clipFunction{}, false
	}
	f, ok := clippedOf(t, inner, x)
	return step(f), ok
}

// clippedStep returns what n adds to the function of one of its inputs, and that input; nil if n is no such node.
func clippedStep(t *Tape, n *ir.Node) (step func(clipFunction) clipFunction, inner *ir.Value) {
	switch {
	case is(n, "", "Relu"):
		return func(f clipFunction) clipFunction { return f.clip(0, math.Inf(1)) }, n.Input(0)
	case is(n, "", "HardSigmoid"):
		alpha, beta := float64(n.Float("alpha", 0.2)), float64(n.Float("beta", 0.5))
		if alpha > 0 {
			return func(f clipFunction) clipFunction { return f.times(alpha).plus(beta).clip(0, 1) }, n.Input(0)
		}
	case is(n, "", "Clip"):
		lo, lower := clipBound(t, n, 1, "min", math.Inf(-1))
		hi, upper := clipBound(t, n, 2, "max", math.Inf(1))
		if lower && upper {
			return func(f clipFunction) clipFunction { return f.clip(lo, hi) }, n.Input(0)
		}
	case len(n.Inputs()) == 2:
		return clippedByConstant(t, n)
	}
	return nil, nil
}

// clippedByConstant is clippedStep of operators with a constant operand.
func clippedByConstant(t *Tape, n *ir.Node) (step func(clipFunction) clipFunction, inner *ir.Value) {
	inner = n.Input(0)
	c, ok := t.elements.scalar(n.Input(1))
	if !ok && is(n, "", "Add", "Mul", "Min", "Max") {
		inner = n.Input(1)
		c, ok = t.elements.scalar(n.Input(0))
	}
	switch {
	case !ok:
	case is(n, "", "Add"):
		return func(f clipFunction) clipFunction { return f.plus(c) }, inner
	case is(n, "", "Sub"):
		return func(f clipFunction) clipFunction { return f.plus(-c) }, inner
	// A negative factor would exchange the bounds, which clipFunction cannot express.
	case is(n, "", "Mul") && c > 0:
		return func(f clipFunction) clipFunction { return f.times(c) }, inner
	case is(n, "", "Div") && c > 0:
		return func(f clipFunction) clipFunction { return f.times(1 / c) }, inner
	case is(n, "", "Min"):
		return func(f clipFunction) clipFunction { return f.clip(math.Inf(-1), c) }, inner
	case is(n, "", "Max"):
		return func(f clipFunction) clipFunction { return f.clip(c, math.Inf(1)) }, inner
	}
	return nil, nil
}

// clipBound returns a bound of Clip, absent where it is not given, and whether it is known.
func clipBound(t *Tape, n *ir.Node, i int, attr string, absent float64) (bound float64, known bool) {
	if a := n.Attr(attr); a != nil {
		return float64(a.F), true
	}
	if n.Input(i) == nil {
		return absent, true
	}
	return t.elements.scalar(n.Input(i))
}
