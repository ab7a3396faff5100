package grad

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// chain returns the training graph of x[2,8,16,16] → Conv → the nodes of build → GlobalAveragePool, and the bytes of
// the convolution's result.
func chain(t *testing.T, build func(g *ir.Graph, v *ir.Value) *ir.Value) (*Tape, int64) {
	t.Helper()
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 22}}
	g := m.Graph
	x := g.AddValue("x")
	spec := ir.Spec{DType: ir.Float, Shape: []int64{2, 8, 16, 16}}
	x.Type = typeOf(spec)
	g.Inputs = []*ir.Value{x}
	y := g.Insert(nil, "Conv", []*ir.Value{x, weight(g, 8, 8, 1, 1)})
	g.AddOutput(g.Insert(nil, "GlobalAveragePool", []*ir.Value{build(g, y)}))
	tape, err := New(t.Context(), m, Options{Inputs: map[string]ir.Spec{"x": spec}})
	if err != nil {
		t.Fatal(err)
	}
	out := tape.Graph().Outputs[0]
	seed := tape.Input("seed", ir.Float, tape.Shape(out)...)
	if err := tape.Backward(map[*ir.Value]*ir.Value{out: seed}); err != nil {
		t.Fatal(err)
	}
	var grads []*ir.Value
	for _, p := range tape.Params {
		grads = append(grads, p.Grad)
	}
	tape.Graph().SetOutputs(grads...)
	return tape, spec.Bytes()
}

func weight(g *ir.Graph, shape ...int64) *ir.Value {
	s := ir.Spec{DType: ir.Float, Shape: shape}
	return g.AddConst("w", &ir.Tensor{Spec: s, Source: ir.Mem(make([]byte, s.Bytes()))})
}

// plannedStored returns the bytes that the engine's plan holds between the forward and the backward pass.
func plannedStored(t *testing.T, tape *Tape) (bytes int64) {
	t.Helper()
	s, err := engine.Open(t.Context(), tape.Model, engine.Options{PlanOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	specs := map[string]ir.Spec{}
	for _, v := range tape.Graph().Inputs {
		specs[v.Name] = tape.types[v]
	}
	u, err := s.UsageWith(specs, 1)
	if err != nil {
		t.Fatal(err)
	}
	first := 0
	for !strings.HasPrefix(u.Steps[first].Out[0].Name, "g") { // values of the backward pass
		first++
	}
	for _, b := range u.Plan.Blocks {
		if b.First < first && b.Last >= first {
			bytes += b.Bytes
		}
	}
	return bytes
}

// Piecewise linear activations store a bit per element, unless their result is stored for another consumer.
func TestMasks(t *testing.T) {
	relu := func(g *ir.Graph, v *ir.Value) *ir.Value { return g.Insert(nil, "Relu", []*ir.Value{v}) }
	clip := func(g *ir.Graph, v *ir.Value) *ir.Value {
		c := func(x float32) *ir.Value {
			return g.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Floats(x)})
		}
		return g.Insert(nil, "Clip", []*ir.Value{v, c(0), c(6)})
	}
	of := func(typ string, inner func(*ir.Graph, *ir.Value) *ir.Value, attrs ...*ir.Attr) func(*ir.Graph,
		*ir.Value) *ir.Value {
		return func(g *ir.Graph, v *ir.Value) *ir.Value {
			return g.Insert(nil, typ, []*ir.Value{inner(g, v)}, attrs...)
		}
	}
	self := func(_ *ir.Graph, v *ir.Value) *ir.Value { return v }
	pool := []*ir.Attr{ir.IntsAttr("kernel_shape", 2, 2), ir.IntsAttr("strides", 2, 2),
		ir.StringAttr("auto_pad", "SAME_UPPER")}
	conv := func(inner func(*ir.Graph, *ir.Value) *ir.Value) func(*ir.Graph, *ir.Value) *ir.Value {
		return func(g *ir.Graph, v *ir.Value) *ir.Value {
			return g.Insert(nil, "Conv", []*ir.Value{inner(g, v), weight(g, 8, 8, 1, 1)})
		}
	}
	for _, c := range []struct {
		name  string
		build func(*ir.Graph, *ir.Value) *ir.Value
		want  float64 // of the bytes of the convolution's result
	}{
		{"Relu, GlobalAveragePool", relu, 1. / 32},
		{"Clip", clip, 1. / 32},
		{"LeakyRelu", of("LeakyRelu", self), 1. / 32},
		{"HardSigmoid", of("HardSigmoid", self), 1. / 32},
		{"ThresholdedRelu", of("ThresholdedRelu", self), 1. / 32},
		{"HardSwish keeps its input", of("HardSwish", self), 1},
		{"Relu, MaxPool", of("MaxPool", relu, pool...), 1./32 + 1./16}, // a byte per output of the pool
		{"Relu, Add", func(g *ir.Graph, v *ir.Value) *ir.Value {
			return g.Insert(nil, "Add", []*ir.Value{relu(g, v), v})
		}, 1. / 32},
		{"Relu, DepthToSpace", of("DepthToSpace", relu, ir.IntAttr("blocksize", 2)), 1. / 32},
		{"Relu, Conv", conv(relu), 1},
		{"Relu, Reshape, Conv", conv(func(g *ir.Graph, v *ir.Value) *ir.Value {
			shape := g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{4}},
				Source: ir.Ints(2, 8, 8, 32)})
			return g.Insert(nil, "Reshape", []*ir.Value{relu(g, v), shape})
		}), 1},
		{"Relu, AveragePool, Conv", conv(of("AveragePool", relu, pool[:2]...)), 1./32 + 1./4},
	} {
		tape, bytes := chain(t, c.build)
		stored := int64(0)
		for _, v := range tape.Activations().Stored() {
			stored += tape.Bytes(v)
		}
		if want := int64(c.want * float64(bytes)); stored != want || plannedStored(t, tape) != want {
			t.Errorf("%s: %d bytes are stored, %d in the plan, want %d", c.name, stored, plannedStored(t, tape), want)
		}
	}
}
