package elementwise

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// numberOps are the unary operators on integers and floats, and those on bool.
func numberOps() []op.Op {
	signed := block.Floats | block.Signed
	ops := []op.Op{
		unary("", "Abs", 6, block.Numbers, runNumber),
		unary("", "Neg", 6, signed, runNumber),
		unary("", "Relu", 6, signed, runNumber),
		unary("", "Sign", 9, block.Numbers, runNumber),
		unary("", "Shrink", 9, block.Numbers, runNumber),
		unary("", "BitwiseNot", 18, block.Ints, runNumber),
		unary("", "Not", 1, block.Bool, runNot),
	}
	for _, o := range []op.Op{
		{Type: "IsNaN", Since: 9, Run: runIsNaN},
		{Type: "IsInf", Since: 10, Run: runIsInf},
	} {
		o.Shape, o.Work = unaryShape(block.Floats|block.Float8, ir.Bool), isWork
		ops = append(ops, o)
	}
	return ops
}

func runNumber(c *op.Call) error {
	x := c.In[0]
	switch dt := x.DType; {
	case (block.Float | block.Halves).Has(dt):
		return transform(c, x, block.Grain, floatFunction(c.Node))
	case dt == ir.Double || c.ID.Type == "Shrink": // its bias is a float for integers, too
		return transform(c, x, block.Grain, mapped(numberFunction[float64](c.Node)))
	case block.Signed.Has(dt):
		return transform(c, x, block.Grain, intFunction[int64](c.Node))
	case block.Unsigned.Has(dt):
		return transform(c, x, block.Grain, intFunction[uint64](c.Node))
	default:
		return unexpected(c, dt)
	}
}

func floatFunction(n *op.Node) func(dst, x []float32) {
	switch n.ID.Type {
	case "Abs":
		return kernel.Abs
	case "Neg":
		return kernel.Neg
	case "Relu":
		return kernel.Relu
	}
	return mapped(numberFunction[float32](n))
}

func intFunction[T integer](n *op.Node) func(dst, x []T) {
	if n.ID.Type == "BitwiseNot" {
		return mapped(func(v T) T { return ^v })
	}
	return mapped(numberFunction[T](n))
}

func numberFunction[T number](n *op.Node) func(T) T {
	switch n.ID.Type {
	case "Abs":
		return absolute[T]()
	case "Neg":
		return func(v T) T { return -v }
	case "Relu":
		return func(v T) T { return max(v, 0) }
	case "Sign":
		return sign[T]
	}
	return shrink[T](float64(n.Float("lambd", 0.5)), float64(n.Float("bias", 0)))
}

// absolute: that of -0 is 0, and that of the minimum integer itself.
func absolute[T number]() func(T) T {
	if !isInteger[T]() {
		return func(v T) T { return T(math.Abs(float64(v))) }
	}
	return func(v T) T {
		if v < 0 {
			return -v
		}
		return v
	}
}

// sign preserves zeros and NaN.
func sign[T number](v T) T {
	switch {
	case v > 0:
		return 1
	case v < 0:
		// A constant -1 is not possible for the unsigned types of T.
		return 0 - T(1)
	}
	return v
}

func shrink[T number](lambd, bias float64) func(T) T {
	return func(v T) T {
		switch x := float64(v); {
		case x < -lambd:
			return T(x + bias)
		case x > lambd:
			return T(x - bias)
		}
		return 0
	}
}

func runNot(c *op.Call) error {
	return transform(c, c.In[0], block.Grain, mapped(func(v bool) bool { return !v }))
}

func runIsNaN(c *op.Call) error {
	return classify(c, func(v float32) bool { return v != v }, math.IsNaN)
}

func runIsInf(c *op.Call) error {
	positive, negative := c.Bool("detect_positive", true), c.Bool("detect_negative", true)
	f := func(v float64) bool { return positive && math.IsInf(v, 1) || negative && math.IsInf(v, -1) }
	return classify(c, func(v float32) bool { return f(float64(v)) }, f)
}

// classify tests every element. 8-bit floats are widened first.
func classify(c *op.Call, is32 func(float32) bool, is64 func(float64) bool) error {
	x := c.In[0]
	if x.DType == ir.Double {
		return transform(c, x, block.Grain, mapped(is64))
	}
	if block.Float8.Has(x.DType) {
		x, _ = converted(c, x, ir.Float, c.Work[c.Pool.Workers()*zipBytes:])
	}
	return transform(c, x, block.Grain, mapped(is32))
}

func isWork(_ *op.Node, in []*ir.Array, workers int) int64 {
	size := int64(workers) * zipBytes
	if block.Float8.Has(in[0].DType) {
		size += block.Bytes[float64](int(in[0].Elems()))
	}
	return size
}
