package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A chain is a graph of convolutions with random weights.
type chain struct {
	*ir.Graph
	*rand.Rand
}

func (c chain) weights(shape ...int64) *ir.Value { return c.weightsOf(1, shape...) }

// sparseWeights has nine zeros in ten elements.
func (c chain) sparseWeights(shape ...int64) *ir.Value { return c.weightsOf(0.1, shape...) }

func (c chain) weightsOf(density float64, shape ...int64) *ir.Value {
	a := ir.NewArray(ir.Float, shape...)
	for i := range ir.View[float32](a) {
		if c.Float64() < density {
			ir.View[float32](a)[i] = float32(c.NormFloat64()) / 4
		}
	}
	return c.AddConst("w", &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
}

func (c chain) pointwise(x *ir.Value, from, to int64) *ir.Value {
	return c.Insert(nil, "Conv", []*ir.Value{x, c.weights(to, from, 1, 1), c.weights(to)})
}

// depthwise has no bias.
func (c chain) depthwise(x *ir.Value, channels, size int64, attrs ...*ir.Attr) *ir.Value {
	return c.Insert(nil, "Conv", []*ir.Value{x, c.weights(channels, 1, size, size)},
		append(attrs, ir.IntAttr("group", channels))...)
}

func (c chain) op(name string, in ...*ir.Value) *ir.Value { return c.Insert(nil, name, in) }

// Values between convolutions have channels last, unless another operator reads them, with bit-identical results.
func TestChannelsLast(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	c := chain{m.Graph, rand.New(rand.NewPCG(1, 2))}
	x := c.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 7}, {N: -1}, {N: -1}}}
	c.Inputs = []*ir.Value{x}
	// last
	a := c.Insert(nil, "Conv", []*ir.Value{x, c.weights(20, 7, 3, 3)}, ir.IntsAttr("pads", 0, 1, 2, 1),
		ir.IntsAttr("strides", 1, 2))
	// last
	a = c.op("Relu", c.pointwise(a, 20, 320))
	// last
	a = c.op("Relu", c.depthwise(a, 320, 3, ir.IntsAttr("pads", 1, 1, 0, 2), ir.IntsAttr("strides", 2, 1)))
	// last
	a = c.pointwise(a, 320, 24)
	// last, both
	b := c.depthwise(c.pointwise(a, 24, 32), 32, 5, ir.IntsAttr("pads", 4, 4, 4, 4), ir.IntsAttr("dilations", 2, 2))
	a = c.op("Add", c.pointwise(b, 32, 24), a) // last
	d := c.op("Relu", c.pointwise(a, 24, 16))
	c.AddOutput(c.op("Add", c.pointwise(d, 16, 16), c.op("Sigmoid", d)))
	// not whole vectors of channels
	c.AddOutput(c.pointwise(c.depthwise(c.pointwise(a, 24, 18), 18, 3, ir.IntsAttr("pads", 1, 1, 1, 1)), 18, 16))
	c.AddOutput(c.op("GlobalAveragePool", c.pointwise(a, 24, 150))) // last
	c.compareLayouts(t, m, 8)
}

// Winograd's algorithm reads and writes both layouts.
func TestChannelsLastOfWinograd(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	c := chain{m.Graph, rand.New(rand.NewPCG(1, 3))}
	x := c.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 7}, {N: -1}, {N: -1}}}
	c.Inputs = []*ir.Value{x}
	winograd := func(x *ir.Value, from, to int64) *ir.Value {
		return c.Insert(nil, "Conv", []*ir.Value{x, c.weights(to, from, 3, 3)}, ir.IntsAttr("pads", 1, 1, 1, 1))
	}
	a := c.pointwise(x, 7, 32)                            // last
	b := c.op("Relu", winograd(a, 32, 96))                // last
	a = c.op("Relu", c.op("Add", winograd(b, 96, 32), a)) // last, both
	c.AddOutput(winograd(c.op("Relu", winograd(a, 32, 16)), 16, 16))
	c.AddOutput(winograd(winograd(c.pointwise(x, 7, 16), 16, 40), 40, 16)) // not whole vectors of channels
	c.compareLayouts(t, m, 4)
}

// A max pool of a small window reads channels last, and then writes either layout.
func TestChannelsLastOfMaxPool(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	c := chain{m.Graph, rand.New(rand.NewPCG(1, 4))}
	x := c.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 7}, {N: -1}, {N: -1}}}
	c.Inputs = []*ir.Value{x}
	pool := func(x *ir.Value, size int64, attrs ...*ir.Attr) *ir.Value {
		return c.Insert(nil, "MaxPool", []*ir.Value{x}, append(attrs, ir.IntsAttr("kernel_shape", size, size))...)
	}
	// last, both
	a := pool(c.pointwise(x, 7, 24), 3, ir.IntsAttr("strides", 2, 2), ir.IntsAttr("pads", 1, 1, 1, 1))
	// last
	c.AddOutput(c.pointwise(pool(a, 2, ir.IntsAttr("dilations", 1, 2), ir.IntsAttr("pads", 0, 1, 1, 1)), 24, 16))
	// last
	c.AddOutput(pool(c.pointwise(a, 24, 20), 3, ir.IntsAttr("strides", 1, 2), ir.IntsAttr("pads", 2, 2, 2, 2),
		ir.IntAttr("ceil_mode", 1)))
	c.AddOutput(c.pointwise(pool(x, 1), 7, 16))
	c.AddOutput(c.pointwise(pool(c.pointwise(a, 24, 16), 4, ir.IntsAttr("pads", 2, 2, 2, 2)), 16, 16))
	c.compareLayouts(t, m, 4)
}

// Sparse weights are multiplied with both layouts, in 1×1 kernels and larger ones, with strides, residuals and
// activations.
func TestChannelsLastOfSparseWeights(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	c := chain{m.Graph, rand.New(rand.NewPCG(1, 4))}
	x := c.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 7}, {N: -1}, {N: -1}}}
	c.Inputs = []*ir.Value{x}
	sparse := func(x *ir.Value, from, to, size int64, attrs ...*ir.Attr) *ir.Value {
		return c.Insert(nil, "Conv", []*ir.Value{x, c.sparseWeights(to, from, size, size)}, attrs...)
	}
	pads := ir.IntsAttr("pads", 1, 1, 1, 1)
	a := sparse(x, 7, 130, 3, pads)                                                       // last
	b := c.op("Relu", sparse(a, 130, 150, 1))                                             // last
	a = c.op("Relu", c.op("Add", sparse(b, 150, 130, 1), a))                              // last, both
	b = c.op("Relu", sparse(a, 130, 35, 3, pads))                                         // last
	a = c.op("Relu", c.op("Add", sparse(b, 35, 130, 3, pads), a))                         // last, both
	a = c.pointwise(sparse(a, 130, 144, 3, pads, ir.IntsAttr("strides", 2, 2)), 144, 130) // last, both
	c.AddOutput(sparse(a, 130, 128, 1))
	// last
	c.AddOutput(c.op("Sigmoid", sparse(sparse(c.op("Sigmoid", sparse(a, 130, 128, 1)), 128, 131, 1), 131, 4, 5,
		ir.IntsAttr("pads", 2, 2, 2, 2))))
	c.compareLayouts(t, m, 9)
}

// compareLayouts compares the results of a model, so many images of which have channels last, with those of channels
// first.
func (c chain) compareLayouts(t *testing.T, m *ir.Model, wantImages int) {
	t.Helper()
	for _, workers := range []int{1, 3} {
		first, last := openChain(t, m, workers), openChain(t, m, workers)
		images := 0
		for i, s := range last.prog.steps {
			if s.LastOut {
				images++
			}
			first.prog.steps[i].LastIn, first.prog.steps[i].LastOut = false, false
		}
		if images != wantImages {
			t.Errorf("%d images have channels last, want %d", images, wantImages)
		}
		for _, shape := range [][]int64{{1, 7, 4, 1}, {3, 7, 3, 3}, {2, 7, 9, 11}, {1, 7, 40, 77}, {1, 7, 4, 401}} {
			in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, shape...)}
			for i := range ir.View[float32](in["x"]) {
				ir.View[float32](in["x"])[i] = float32(c.NormFloat64())
			}
			want, err := first.Run(t.Context(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := last.Run(t.Context(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, w := range want {
				if !bytes.Equal(w.Data, got[name].Data) {
					t.Errorf("%d workers, images of %v: output %q differs", workers, shape, name)
				}
			}
		}
	}
}

func openChain(t *testing.T, m *ir.Model, workers int) *Interpreter {
	t.Helper()
	e, err := Open(t.Context(), m, Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}
