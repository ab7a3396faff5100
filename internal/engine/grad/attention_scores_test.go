package grad

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// TestProbabilities: the probabilities of each form of attention, times the values, are the result of the fused
// operator.
func TestProbabilities(t *testing.T) {
	for _, f := range forms {
		if f.to != "AttentionKeep" || f.tell == "of ONNX, one query without keys" { // whose result is zero
			continue
		}
		t.Run(f.tell, func(t *testing.T) {
			specs := map[string]ir.Spec{}
			for name, a := range f.inputs() {
				specs[name] = a.Spec()
			}
			var got, want *ir.Value
			compared := func(tape *Tape) error {
				a := tape.Attentions()[0]
				got, want = unfused(tape, a), stackOfResult(tape, a)
				return nil
			}
			tape, err := New(t.Context(), f.model(), Options{Inputs: specs, Append: compared, Bare: true})
			if err != nil {
				t.Fatal(err)
			}
			tape.Graph().SetOutputs(got, want)
			out := run(t, tape.Model, f.inputs())
			x, y := ir.View[float64](out[got.Name]), ir.View[float64](out[want.Name])
			for i := range y {
				if len(x) != len(y) || !(math.Abs(x[i]-y[i]) <= 1e-9) {
					t.Fatalf("element %d of %d is %v, want %v of %d", i, len(x), x[i], y[i], len(y))
				}
			}
		})
	}
}

// unfused returns probabilities times values, [batch, heads, queries, size].
func unfused(t *Tape, a AttentionLayer) *ir.Value {
	v, shape := a.Operand(2)
	p := t.Reshape(a.Probabilities(), []int64{-1, shape[1], a.Heads / shape[1], a.Queries, a.Keys})
	y := t.Op("MatMul", []*ir.Value{p, t.Reshape(v, []int64{-1, shape[1], 1, a.Keys, shape[3]})})
	return t.Reshape(y, []int64{-1, a.Heads, a.Queries, shape[3]})
}

// stackOfResult returns the result of the fused operator as a stack of matrices.
func stackOfResult(t *Tape, a AttentionLayer) *ir.Value {
	y, perm := a.node.Outputs[0], ints(a.node, "permY")
	if perm == nil {
		return y
	}
	inverse := make([]int64, len(perm))
	for i := range perm {
		inverse[i] = int64(slices.Index(perm, int64(i)))
	}
	return t.Transpose(y, inverse)
}

// TestCuts: all paths contain the results of the layers of a chain, and those before and after a residual block, but
// none inside of it.
func TestCuts(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = typeOf(ir.Spec{DType: ir.Float, Shape: []int64{2, 4}})
	g.Inputs = append(g.Inputs, x)
	layer := func(name string, x *ir.Value) *ir.Value {
		w := g.AddConst(name+".weight", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4, 4}},
			Source: ir.Floats(make([]float32, 16)...)})
		y := g.Insert(nil, "MatMul", []*ir.Value{x, w})
		y.Name = name
		return y
	}
	first := layer("first", g.Insert(nil, "Neg", []*ir.Value{x}))
	inside := layer("inside", g.Insert(nil, "Relu", []*ir.Value{first}))
	sum := g.Insert(nil, "Add", []*ir.Value{first, g.Insert(nil, "Mul", []*ir.Value{inside, x})})
	sum.Name = "sum"
	g.AddOutput(layer("last", sum))
	tape, err := New(t.Context(), m, Options{Train: func(string) bool { return false }, Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range tape.Cuts() {
		got = append(got, v.Name)
	}
	if want := []string{"first", "sum", "last"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
