package grad

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestBatchNormalizations(t *testing.T) {
	positive := values(5, 3)
	for i, v := range ir.View[float64](positive) {
		ir.View[float64](positive)[i] = 0.5 + v*v
	}
	epsilon := []*ir.Attr{ir.FloatAttr("epsilon", 0.01)}
	trained := ir.OpID{Domain: own, Type: "BatchNormTrain"}
	var probes []probe
	for _, shape := range [][]int64{{4, 3}, {2, 3, 5}, {2, 3, 4, 3}} {
		x, scale, b := values(1, shape...), values(2, 3), values(3, 3)
		probes = append(probes,
			probe{op: onnx("BatchNormalization"), attrs: epsilon, in: []*ir.Array{x, scale, b, values(4, 3), positive}},
			probe{op: trained, attrs: epsilon, in: []*ir.Array{x, scale, b}},
		)
		if len(shape) > 2 {
			probes = append(probes, probe{op: onnx("InstanceNormalization"), attrs: epsilon,
				in: []*ir.Array{x, scale, b}})
		}
	}
	checkAll(t, probes)
}

// batchModel is two consecutive normalizations of x with shared running statistics.
func batchModel(attrs ...*ir.Attr) *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 15}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = typeOf(ir.Spec{DType: ir.Float, Shape: []int64{4, 2, 3}})
	g.Inputs = []*ir.Value{x}
	pair := func(name string, a, b float32) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2}}, Source: ir.Floats(a, b)})
	}
	scale, b, mean, variance := pair("scale", 2, 3), pair("b", -1, 1), pair("mean", 0.5, -0.25), pair("var", 2, 0.75)
	y := g.Insert(nil, "BatchNormalization", []*ir.Value{x, scale, b, mean, variance}, attrs...)
	g.AddOutput(g.Insert(nil, "BatchNormalization", []*ir.Value{y, scale, b, mean, variance}, attrs...))
	return m
}

// Training with batch statistics equals two consecutive BatchNormalization of the specification, running statistics
// included.
func TestBatchStatistics(t *testing.T) {
	spec := ir.Spec{DType: ir.Float, Shape: []int64{4, 2, 3}}
	tape, err := New(t.Context(), batchModel(ir.FloatAttr("momentum", 0.8)),
		Options{Inputs: map[string]ir.Spec{"x": spec}, BatchStatistics: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(tape.Running) != 2 {
		t.Fatalf("%d running statistics, want 2", len(tape.Running))
	}
	in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, 4, 2, 3)}
	for i, v := range ir.View[float64](values(1, 24)) {
		ir.View[float32](in["x"])[i] = float32(v)
	}
	before := map[string]*ir.Array{"scale": ir.ArrayOf([]float32{2, 3}, 2), "b": ir.ArrayOf([]float32{-1, 1}, 2)}
	for _, p := range tape.Params {
		in[p.Value.Name] = before[p.Name]
	}
	start := [][]float32{{0.5, -0.25}, {2, 0.75}}
	for i, r := range tape.Running {
		in[r.Value.Name] = ir.ArrayOf(start[i], 2)
		tape.Graph().AddOutput(r.New)
	}
	got := run(t, tape.Model, in)

	x := in["x"]
	for range 2 {
		x, start = once(t, x, start)
	}
	alike(t, "Y", ir.View[float32](got[tape.Graph().Outputs[0].Name]), ir.View[float32](x))
	for i, r := range tape.Running {
		alike(t, r.Name, ir.View[float32](got[r.New.Name]), start[i])
	}
}

// once runs one normalization in the training form of the specification.
func once(t *testing.T, x *ir.Array, running [][]float32) (*ir.Array, [][]float32) {
	t.Helper()
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 15}}
	g, in := m.Graph, map[string]*ir.Array{}
	for _, v := range []struct {
		name string
		a    *ir.Array
	}{
		{"x", x},
		{"scale", ir.ArrayOf([]float32{2, 3}, 2)}, {"b", ir.ArrayOf([]float32{-1, 1}, 2)},
		{"mean", ir.ArrayOf(running[0], 2)}, {"var", ir.ArrayOf(running[1], 2)},
	} {
		input := g.AddValue(v.name)
		input.Type = typeOf(v.a.Spec())
		g.Inputs = append(g.Inputs, input)
		in[v.name] = v.a
	}
	outs := g.InsertN(nil, "BatchNormalization", 3, g.Inputs, ir.IntAttr("training_mode", 1),
		ir.FloatAttr("momentum", 0.8))
	for _, v := range outs {
		g.AddOutput(v)
	}
	got := run(t, m, in)
	return got[outs[0].Name], [][]float32{ir.View[float32](got[outs[1].Name]), ir.View[float32](got[outs[2].Name])}
}

func alike(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-5*(1+math.Abs(float64(want[i])))) {
			t.Errorf("%s[%d] is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Without the option the statistics are frozen.
func TestFrozenStatistics(t *testing.T) {
	spec := ir.Spec{DType: ir.Float, Shape: []int64{4, 2, 3}}
	tape, err := New(t.Context(), batchModel(), Options{Inputs: map[string]ir.Spec{"x": spec}})
	if err != nil {
		t.Fatal(err)
	}
	if n := tape.Graph().First(); n.Op.Type != "BatchNormalization" || len(tape.Running) != 0 {
		t.Errorf("first node is %s, and there are %d running statistics", n.Op, len(tape.Running))
	}
}
