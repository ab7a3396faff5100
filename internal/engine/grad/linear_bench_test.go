package grad

import (
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// BenchmarkMLP is a step of 784-512-512-10 with 128 samples, forward and backward.
func BenchmarkMLP(b *testing.B) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 21}}
	x := m.Graph.AddValue("x")
	m.Graph.Inputs = []*ir.Value{x}
	sizes := []int64{784, 512, 512, 10}
	for i, outer := range sizes[1:] {
		w, bias := single(sizes[i], outer), single(outer)
		in := []*ir.Value{x,
			m.Graph.AddConst(fmt.Sprintf("w%d", i), &ir.Tensor{Spec: w.Spec(), Source: ir.Mem(w.Data)}),
			m.Graph.AddConst(fmt.Sprintf("b%d", i), &ir.Tensor{Spec: bias.Spec(), Source: ir.Mem(bias.Data)}),
		}
		if x = m.Graph.Insert(nil, "Gemm", in); i < 2 {
			x = m.Graph.Insert(nil, "Relu", []*ir.Value{x})
		}
	}
	m.Graph.AddOutput(x)
	benchmarkStep(b, m, 128, 784)
}

// benchmarkStep runs the forward and backward pass of a model with an input x of that shape and one output.
func benchmarkStep(b *testing.B, m *ir.Model, shape ...int64) {
	tape, err := New(b.Context(), m, Options{Inputs: map[string]ir.Spec{"x": {DType: ir.Float, Shape: shape}}})
	if err != nil {
		b.Fatal(err)
	}
	y := tape.Graph().Outputs[0]
	seed := tape.Input("dy", ir.Float, tape.Shape(y)...)
	if err := tape.Backward(map[*ir.Value]*ir.Value{y: seed}); err != nil {
		b.Fatal(err)
	}
	for _, p := range tape.Params {
		tape.Graph().AddOutput(p.Grad)
	}
	args := map[string]*ir.Array{}
	for _, v := range tape.Graph().Inputs {
		args[v.Name] = single(tape.Shape(v)...)
	}
	s, err := engine.Open(b.Context(), tape.Model, engine.Options{Workers: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.Run(b.Context(), args, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// single are small random numbers.
func single(shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Float, shape...)
	for i, v := range ir.View[float64](values(1, shape...)) {
		ir.View[float32](a)[i] = float32(v) / 30
	}
	return a
}
