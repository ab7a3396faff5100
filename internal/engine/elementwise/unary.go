package elementwise

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A function is a unary operator on floats.
type function struct {
	name  string
	since int64
	exact func(float64) float64  // for double, and for float if fast is missing
	fast  func(dst, x []float32) // may be missing
	heavy bool                   // many times slower than an addition
}

var functions = []function{
	{"Acos", 7, math.Acos, nil, true},
	{"Acosh", 9, math.Acosh, nil, true},
	{"Asin", 7, math.Asin, nil, true},
	{"Asinh", 9, math.Asinh, nil, true},
	{"Atan", 7, math.Atan, nil, true},
	{"Atanh", 9, math.Atanh, nil, true},
	{"Ceil", 6, math.Ceil, ceil, false},
	{"Cos", 7, math.Cos, kernel.Cos, true},
	{"Cosh", 9, math.Cosh, nil, true},
	{"Erf", 9, math.Erf, kernel.Erf, true},
	{"Exp", 6, math.Exp, kernel.Exp, true},
	{"Floor", 6, math.Floor, floor, false},
	{"HardSwish", 14, hardSwish, kernel.HardSwish, false},
	{"Log", 6, math.Log, kernel.Log, true},
	{"Mish", 18, mish, fastMish, true},
	{"Reciprocal", 6, reciprocal, kernel.Reciprocal, false},
	{"Round", 11, math.RoundToEven, round, false},
	{"Sigmoid", 6, sigmoid, kernel.Sigmoid, true},
	{"Sin", 7, math.Sin, kernel.Sin, true},
	{"Sinh", 9, math.Sinh, nil, true},
	{"Softplus", 1, softplus, kernel.Softplus, true},
	{"Softsign", 1, softsign, nil, false},
	{"Sqrt", 6, math.Sqrt, kernel.Sqrt, false},
	{"Tan", 7, math.Tan, nil, true},
	{"Tanh", 6, math.Tanh, kernel.Tanh, true},
}

func unaryOps() []op.Op {
	var ops []op.Op
	for _, f := range functions {
		ops = append(ops, unary("", f.name, f.since, block.Floats, f.run))
	}
	return ops
}

// unary is the row of an operator whose output has its input's type.
func unary(domain, name string, since int64, types block.Set, run func(*op.Call) error) op.Op {
	return op.Op{
		Domain: domain, Type: name, Since: since,
		Shape: unaryShape(types, ir.Undefined), Run: run, Work: mapWork, InPlace: []int{0},
	}
}

// unaryShape returns the input's type, or result if defined.
func unaryShape(types block.Set, result ir.DType) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		x, err := types.Tensor(in, 0, "X")
		if err != nil {
			return nil, err
		}
		if result == ir.Undefined {
			return []ir.Spec{x.Spec()}, nil
		}
		return []ir.Spec{{DType: result, Shape: x.Shape}}, nil
	}
}

func (f function) run(c *op.Call) error {
	grain := block.Grain
	if f.heavy {
		grain /= heavier
	}
	if c.In[0].DType == ir.Double {
		return transform(c, c.In[0], grain, mapped(f.exact))
	}
	if f.fast != nil {
		return transform(c, c.In[0], grain, f.fast)
	}
	return transform(c, c.In[0], grain, mapped(single(f.exact)))
}

// heavier is the factor by which tasks are smaller for slow functions.
const heavier = 4

// single is f on float32.
func single(f func(float64) float64) func(float32) float32 {
	return func(v float32) float32 { return float32(f(float64(v))) }
}

func hardSwish(x float64) float64 { return x * min(max(x/6+0.5, 0), 1) }

func mish(x float64) float64 { return x * math.Tanh(softplus(x)) }

func reciprocal(x float64) float64 { return 1 / x }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// softplus is ln(1+eˣ) without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func softsign(x float64) float64 { return x / (1 + math.Abs(x)) }
