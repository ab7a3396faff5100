package grad

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// residual returns a small convolutional network with all operators that support float16.
func residual() *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := maker{m.Graph}
	x := g.AddValue("x")
	x.Type = typeOf(ir.Spec{DType: ir.Float, Shape: []int64{4, 3, 18, 18}})
	g.Inputs = []*ir.Value{x}
	weight := func(name string, spread, center float32, shape ...int64) *ir.Value {
		a := ir.NewArray(ir.Float, shape...)
		for i, v := range ir.View[float64](values(uint64(len(name)), shape...)) {
			ir.View[float32](a)[i] = center + spread*float32(v)
		}
		return g.AddConst(name, &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
	}
	layer := func(x *ir.Value, name string, in, out int64) *ir.Value {
		y := m.Graph.Insert(nil, "Conv", []*ir.Value{x, weight(name+"w", 0.3, 0, out, in, 3, 3)},
			ir.IntsAttr("pads", 1, 1, 1, 1))
		return m.Graph.Insert(nil, "BatchNormalization",
			[]*ir.Value{y, weight(name+"s", 0.1, 1, out), weight(name+"b", 0.1, 0, out),
				weight(name+"m", 0.1, 0, out), weight(name+"v", 0, 1, out)})
	}
	y := g.op("Relu", layer(x, "a", 3, 8))
	y = m.Graph.Insert(nil, "MaxPool", []*ir.Value{y}, ir.IntsAttr("kernel_shape", 2, 2), ir.IntsAttr("strides", 2, 2))
	y = g.op("Relu", g.op("Add", layer(g.op("Relu", layer(y, "bb", 8, 8)), "ccc", 8, 8), y))
	m.Graph.AddOutput(g.op("GlobalAveragePool", y))
	return m
}

// float16Step returns the results of a step of residual with scaled seed and first weight, and the fraction of the
// bytes of images that are float32.
func float16Step(t *testing.T, float16 bool, every int, cheap bool, seed, weight float32,
	batch bool) (out map[string]*ir.Array, wide float64) {
	t.Helper()
	spec := ir.Spec{DType: ir.Float, Shape: []int64{4, 3, 18, 18}}
	tape, err := New(t.Context(), residual(), Options{Inputs: map[string]ir.Spec{"x": spec}, BatchStatistics: batch})
	if err != nil {
		t.Fatal(err)
	}
	y := tape.Graph().Outputs[0]
	dy := tape.Input("dy", ir.Float, tape.Shape(y)...)
	if err := tape.Backward(map[*ir.Value]*ir.Value{y: dy}); err != nil {
		t.Fatal(err)
	}
	a := tape.Activations()
	if every > 0 {
		a.Recompute(a.Profile().Every(every))
	}
	if cheap {
		nodes := len(slices.Collect(tape.Graph().Nodes()))
		if a.RecomputeCheap(); every == 0 && len(slices.Collect(tape.Graph().Nodes())) == nodes {
			t.Error("no activation is recomputed")
		}
	}
	if float16 {
		if _, err := a.StoreFloat16(t.Context(), 4<<10, nil); err != nil {
			t.Fatal(err)
		}
	}
	in := map[string]*ir.Array{}
	fill := func(name string, a *ir.Array, by float32) {
		for i, v := range ir.View[float64](values(uint64(len(name)), a.Shape...)) {
			ir.View[float32](a)[i] = float32(v) * by
		}
		in[name] = a
	}
	specs := map[string]ir.Spec{"x": spec, dy.Name: tape.types[dy]}
	fill("x", ir.NewArray(ir.Float, spec.Shape...), 1)
	fill(dy.Name, ir.NewArray(ir.Float, tape.Shape(dy)...), seed)
	for _, p := range tape.Params {
		specs[p.Value.Name] = p.Tensor.Spec
		by := float32(0.3)
		if p.Name == "aw" {
			by *= weight
		}
		fill(p.Value.Name, ir.NewArray(ir.Float, p.Tensor.Shape...), by)
		tape.Graph().AddOutput(p.Grad)
	}
	for _, r := range tape.Running {
		specs[r.Value.Name] = r.Tensor.Spec
		fill(r.Value.Name, ir.NewArray(ir.Float, r.Tensor.Shape...), 1)
	}
	types, err := inferValues(t.Context(), tape.Model, specs)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[ir.DType]float64{}
	for n := range tape.Graph().Nodes() {
		for _, v := range n.Outputs {
			if a := types[v.Name]; a != nil && len(a.Shape) == 4 && a.Shape[0] == 4 && a.Bytes() > 4<<10 {
				sizes[a.DType] += float64(a.Bytes())
			}
		}
	}
	got := run(t, tape.Model, in)
	out = map[string]*ir.Array{"y": got[y.Name]}
	for _, p := range tape.Params {
		out[p.Name] = got[p.Grad.Name]
	}
	return out, sizes[ir.Float] / (sizes[ir.Float] + sizes[ir.Float16])
}

// Gradients are close to those of float32, almost all images are float16, and recomputation is bit-identical.
func TestFloat16(t *testing.T) {
	for _, batch := range []bool{false, true} {
		want, _ := float16Step(t, false, 0, false, 1, 1, batch)
		got, wide := float16Step(t, true, 0, false, 1, 1, batch)
		again, _ := float16Step(t, true, 3, false, 1, 1, batch)
		renewed, _ := float16Step(t, true, 3, true, 1, 1, batch)
		alone, _ := float16Step(t, false, 0, true, 1, 1, batch)
		if wide > 0.1 {
			t.Errorf("%.0f %% of the image bytes are float32", 100*wide)
		}
		for name, a := range want {
			x, y := ir.View[float32](a), ir.View[float32](got[name])
			squares, off := 0.0, 0.0
			for i := range x {
				squares += float64(x[i]) * float64(x[i])
				off += float64(x[i]-y[i]) * float64(x[i]-y[i])
			}
			if off = math.Sqrt(off / squares); !(off < 0.02) || off == 0 {
				t.Errorf("%s has a relative error of %.2g", name, off)
			}
			if !bytes.Equal(alone[name].Data, want[name].Data) {
				t.Errorf("%s differs with recomputation of cheap operators", name)
			}
			if !bytes.Equal(again[name].Data, got[name].Data) || !bytes.Equal(renewed[name].Data, got[name].Data) {
				t.Errorf("%s differs with recomputation", name)
			}
		}
	}
}

// Activations saturate; an overflow of gradients reaches the gradients of weights.
func TestFloat16Overflow(t *testing.T) {
	finite := func(a *ir.Array) bool {
		for _, v := range ir.View[float32](a) {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return false
			}
		}
		return true
	}
	if out, _ := float16Step(t, true, 0, false, 1, 1e6, false); !finite(out["y"]) {
		t.Error("an activation is infinite")
	}
	if out, _ := float16Step(t, true, 0, false, 1e8, 1, false); finite(out["aw"]) {
		t.Error("an overflow of gradients does not reach the weights")
	}
	if out, _ := float16Step(t, false, 0, false, 1e8, 1, false); !finite(out["aw"]) {
		t.Error("float32 overflows, too")
	}
}
