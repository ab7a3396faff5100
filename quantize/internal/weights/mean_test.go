package weights

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Inputs have a mean after rectifiers and operators that keep it, and at inputs of the model, not after products and
// normalizations.
func TestInputsHaveMean(t *testing.T) {
	for _, tt := range []struct {
		name string
		want bool
		x    func(add func(op string, in ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value
	}{
		{"input", true, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value { return x }},
		{"relu", true, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			return add("Identity", add("Relu", add("MatMul", x, c)))
		}},
		{"product", false, func(add func(string, ...*ir.Value) *ir.Value, x,
			c *ir.Value) *ir.Value {
			return add("MatMul", x, c)
		}},
		{"bias", false, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			return add("Add", add("MatMul", x, c), c)
		}},
		{"normalization", false, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			return add("Mul", add("LayerNormalization", add("Relu", x), c), c)
		}},
		{"centered", false, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			return add("Sub", x, add("ReduceMean", x))
		}},
		{"sum of rectified", true, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			return add("Add", add("Relu", x), add("Sigmoid", x))
		}},
		{"residual", false, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			return add("Add", add("Relu", x), add("MatMul", x, c))
		}},
		{"gelu", true, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			h := add("MatMul", x, c)
			return add("Mul", add("Mul", h, add("Add", add("Erf", add("Div", h, c)), c)), c)
		}},
		{"swish", true, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			h := add("MatMul", x, c)
			return add("Mul", add("Sigmoid", h), h)
		}},
		{"gated", false, func(add func(string, ...*ir.Value) *ir.Value, x, c *ir.Value) *ir.Value {
			h := add("MatMul", x, c)
			return add("Mul", add("Mul", add("Sigmoid", h), h), add("MatMul", x, c))
		}},
	} {
		b := ir.NewModel().Graph
		c := b.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2, 2}}, Source: ir.Floats(1, 2, 3, 4)})
		add := func(op string, in ...*ir.Value) *ir.Value { return b.Insert(nil, op, in) }
		w := b.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2, 2}}, Source: ir.Floats(1, 2, 3, 4)})
		x := b.NewValue("x")
		b.Inputs = append(b.Inputs, x)
		y := tt.x(add, x, c)
		b.AddOutput(add("MatMul", y, w))
		if got := InputsHaveMean(w); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
