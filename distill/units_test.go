package distill

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// layered returns a model of the test data with the layer of a weight w of that shape between two others, from 128
// values of a sample in the shape that the layer reads.
func layered(shape, reads []int64, layer func(g *ir.Graph, x, w *ir.Value) *ir.Value) *ir.Model {
	m := network(1, features, 128)
	g, r := m.Graph, rand.New(rand.NewPCG(3, 8))
	ints := func(n ...int64) *ir.Value {
		return g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(n))}},
			Source: ir.Ints(n...)})
	}
	x := g.Insert(nil, "Reshape", []*ir.Value{g.Outputs[0], ints(reads...)})
	y := layer(g, x, g.AddConst("w", random(r, shape...)))
	y = g.Insert(nil, "Reshape", []*ir.Value{y, ints(-1, 256)})
	y = g.Insert(nil, "MatMul", []*ir.Value{y, g.AddConst("last", random(r, 256, classes))})
	y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: classes}}}
	g.SetOutputs(y)
	return m
}

func node(op string, attrs ...*ir.Attr) func(g *ir.Graph, x, w *ir.Value) *ir.Value {
	return func(g *ir.Graph, x, w *ir.Value) *ir.Value { return g.Insert(nil, op, []*ir.Value{x, w}, attrs...) }
}

// behindTranspose returns a layer of the transpose of its weight.
func behindTranspose(op string, attrs ...*ir.Attr) func(g *ir.Graph, x, w *ir.Value) *ir.Value {
	return func(g *ir.Graph, x, w *ir.Value) *ir.Value {
		return node(op)(g, x, g.Insert(nil, "Transpose", []*ir.Value{w}, attrs...))
	}
}

// unitLayers are layers with the units of their weights, and the size of a sum of products.
var unitLayers = map[string]struct {
	shape, reads []int64
	layer        func(g *ir.Graph, x, w *ir.Value) *ir.Value
	units        units
	fanIn        float64
}{
	"Gemm":                    {[]int64{128, 256}, []int64{-1, 128}, node("Gemm"), units{1, 1}, 128},
	"Gemm with transB":        {[]int64{256, 128}, []int64{-1, 128}, node("Gemm", ir.IntAttr("transB", 1)), units{0, 1}, 128},
	"MatMul":                  {[]int64{128, 256}, []int64{-1, 128}, node("MatMul"), units{1, 1}, 128},
	"MatMul behind Transpose": {[]int64{256, 128}, []int64{-1, 128}, behindTranspose("MatMul"), units{0, 1}, 128},
	"Gemm behind Transpose":   {[]int64{256, 128}, []int64{-1, 128}, behindTranspose("Gemm"), units{0, 1}, 128},
	"Transpose without effect": {[]int64{128, 256}, []int64{-1, 128}, behindTranspose("Gemm", ir.IntsAttr("perm", 0, 1)),
		units{1, 1}, 128},
	"batched MatMul": {[]int64{2, 64, 128}, []int64{-1, 2, 1, 64}, node("MatMul"), units{2, 2}, 64},
	"Conv": {[]int64{4, 2, 3, 3}, []int64{-1, 2, 8, 8}, node("Conv", ir.IntsAttr("pads", 1, 1, 1, 1)),
		units{0, 1}, 18},
	"ConvTranspose": {[]int64{2, 4, 3, 3}, []int64{-1, 2, 8, 8}, node("ConvTranspose", ir.IntsAttr("pads", 1, 1, 1, 1)),
		units{1, 1}, 18},
	"ConvTranspose in groups": {[]int64{2, 2, 3, 3}, []int64{-1, 2, 8, 8},
		node("ConvTranspose", ir.IntsAttr("pads", 1, 1, 1, 1), ir.IntAttr("group", 2)), units{1, 2}, 9},
}

// The units of a weight follow from the layer that reads it.
func TestUnits(t *testing.T) {
	data := samples(t, 40)
	for name, c := range unitLayers {
		tr := ready(t, layered(c.shape, c.reads, c.layer), "data", data, "labels", "label", "reinit", "1")
		p := tr.params.byName["w"]
		if p.units != c.units {
			t.Errorf("%s: units %+v, want %+v", name, p.units, c.units)
		}
		most := 0.0
		for _, x := range ir.View[float32](p.array) {
			most = max(most, math.Abs(float64(x)))
		}
		if want := math.Sqrt(6 / c.fanIn); most > want || most < 0.8*want {
			t.Errorf("%s: initial weights reach %v, want %v", name, most, want)
		}
	}
}

// No row of a weight of outputs times inputs, as in PyTorch's Linear, is longer than --max-norm.
func TestMaxNormOfRows(t *testing.T) {
	data := samples(t, 80)
	for _, o := range [][]string{nil, {"accumulate", "2"}} {
		c := unitLayers["Gemm with transB"]
		m := layered(c.shape, c.reads, c.layer)
		if _, err := tune(t, m, 2, append(o, "data", data, "labels", "label", "max-norm", "0.5", "epochs", "1", "validate",
			"0")...); err != nil {
			t.Fatal(err)
		}
		w, longest := ir.View[float32](array(weights(t, m)["w"])), 0.0
		for i := range 256 {
			sum := 0.0
			for _, x := range w[i*128:][:128] {
				sum += float64(x) * float64(x)
			}
			longest = max(longest, math.Sqrt(sum))
		}
		if math.Abs(longest-0.5) > 1e-5 {
			t.Errorf("%v: the longest row has norm %v, want 0.5", o, longest)
		}
	}
}
