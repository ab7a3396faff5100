package grad

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// geluOf fuses ½·x·(1 + f(x)) into Gelu, with the factors in any order: f is erf(x/√2), or tanh(√(2/π)·(x +
// 0.044715·x³)). n is the last Mul.
func geluOf(t *Tape, n *ir.Node) bool {
	factor, rest := constantFactor(t, n)
	if math.Abs(factor-0.5) > 1e-6 || len(rest) != 2 {
		return false
	}
	for i := range 2 {
		x, approximate := geluArgument(t, rest[i].Producer())
		if x != nil && x == rest[1-i] {
			b := inserter{t.Builder, n}
			replaceOutput(n, 0, b.op("Gelu", []*ir.Value{x}, ir.StringAttr("approximate", approximate)))
			return true
		}
	}
	return false
}

// constantFactor returns the product of the constants and the other operands of n, through products that only n
// consumes.
func constantFactor(t *Tape, n *ir.Node) (constant float64, rest []*ir.Value) {
	constant = 1
	for i := range 2 {
		v := n.Input(i)
		if c, ok := t.elements.scalar(v); ok {
			constant *= c
			continue
		}
		p := v.Producer()
		if is(p, "", "Mul") && v.OnlyConsumer() == n && len(rest) < 3 {
			c, inner := constantFactor(t, p)
			constant, rest = constant*c, append(rest, inner...)
			continue
		}
		if is(p, "", "Div") && v.OnlyConsumer() == n {
			if c, ok := t.elements.scalar(p.Input(1)); ok {
				constant, rest = constant/c, append(rest, p.Input(0))
				continue
			}
		}
		rest = append(rest, v)
	}
	return constant, rest
}

// geluArgument returns x and the form if n is 1 + f(x).
func geluArgument(t *Tape, n *ir.Node) (x *ir.Value, approximate string) {
	if !is(n, "", "Add") {
		return nil, ""
	}
	for i := range 2 {
		f := n.Input(i).Producer()
		if one, ok := t.elements.scalar(n.Input(1 - i)); !ok || one != 1 || n.Input(i).OnlyConsumer() != n {
			continue
		}
		switch {
		case is(f, "", "Erf"):
			return factorOf(t, f.Input(0).Producer(), 1/math.Sqrt2), "none"
		case is(f, "", "Tanh"):
			return cubicArgument(t, factorOf(t, f.Input(0).Producer(), math.Sqrt(2/math.Pi))), "tanh"
		}
	}
	return nil, ""
}

// factorOf returns v if n is v times a number.
func factorOf(t *Tape, n *ir.Node, by float64) *ir.Value {
	if !is(n, "", "Mul", "Div") {
		return nil
	}
	for i := range 2 {
		c, ok := t.elements.scalar(n.Input(i))
		if n.Op.Type == "Div" {
			c, ok = 1/c, ok && i == 1
		}
		if ok && math.Abs(c/by-1) < 1e-5 {
			return n.Input(1 - i)
		}
	}
	return nil
}

// cubicArgument returns x if v is x + 0.044715·x³.
func cubicArgument(t *Tape, v *ir.Value) *ir.Value {
	if v == nil || !is(v.Producer(), "", "Add") {
		return nil
	}
	sum := v.Producer()
	for i := range 2 {
		x := sum.Input(i)
		if p := sum.Input(1 - i).Producer(); is(p, "", "Mul") {
			if c, rest := constantFactor(t, p); math.Abs(c/0.044715-1) < 1e-5 && isCube(t, rest, x) {
				return x
			}
		}
	}
	return nil
}

// isCube reports whether factors are x³, or three times x.
func isCube(t *Tape, factors []*ir.Value, x *ir.Value) bool {
	if len(factors) == 1 && is(factors[0].Producer(), "", "Pow") {
		pow := factors[0].Producer()
		e, ok := t.elements.scalar(pow.Input(1))
		return ok && e == 3 && pow.Input(0) == x
	}
	for _, f := range factors {
		if f != x {
			return false
		}
	}
	return len(factors) == 3
}
