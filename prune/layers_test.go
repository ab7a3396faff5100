package prune

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// stack is a model of so many residual layers x + relu(x·w), between an entrance and an exit of other shapes; a mask is
// read by all.
func stack(layers int) *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x, mask := g.AddValue("x"), g.AddValue("mask")
	g.Inputs = []*ir.Value{x, mask}
	weight := func(name string, shape ...int64) *ir.Value {
		s := ir.Spec{DType: ir.Float, Shape: shape}
		return g.AddConst(name, &ir.Tensor{Spec: s, Source: make(ir.Mem, s.Bytes())})
	}
	h := g.Insert(nil, "MatMul", []*ir.Value{x, weight("in", 3, 8)})
	for i := range layers {
		y := g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{h, weight(fmt.Sprintf("w%d", i), 8, 8)})})
		h = g.Insert(nil, "Add", []*ir.Value{h, g.Insert(nil, "Mul", []*ir.Value{y, mask})})
	}
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{h, weight("out", 8, 2)}))
	return m
}

// constants are the names of the constants of m.
func constants(m *ir.Model) []string {
	var names []string
	for _, v := range m.Graph.Consts() {
		names = append(names, v.Name)
	}
	return names
}

func TestLayersThatStayAreSpreadEvenly(t *testing.T) {
	for _, c := range []struct {
		layers int
		amount float64
		want   []string
	}{
		{6, 0.5, []string{"in", "w0", "w2", "w5", "out"}},
		{4, 0.5, []string{"in", "w0", "w3", "out"}},
		{4, 0.25, []string{"in", "w0", "w2", "w3", "out"}},
		{3, 1, []string{"in", "w2", "out"}},
		{5, 0, []string{"in", "w0", "w1", "w2", "w3", "w4", "out"}},
		{1, 0.5, []string{"in", "w0", "out"}},
	} {
		m := stack(c.layers)
		nodes, err := m.Graph.Order()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range repetitions(nodes) {
			r.removeOthers(Layers{Amount: c.amount}.keptPositions(len(r)))
		}
		if err := m.Verify(); err != nil {
			t.Fatal(err)
		}
		if got := constants(m); !slices.Equal(got, c.want) {
			t.Errorf("%d layers, %v left out: %v stay, want %v", c.layers, c.amount, got, c.want)
		}
	}
}

// Layers whose results are smaller or larger than what they read do not repeat, although their operators and weights
// are alike.
func TestLayersKeepTheSize(t *testing.T) {
	weight := func(g *ir.Graph, name string, shape ...int64) *ir.Value {
		s := ir.Spec{DType: ir.Float, Shape: shape}
		return g.AddConst(name, &ir.Tensor{Spec: s, Source: make(ir.Mem, s.Bytes())})
	}
	conv := func(attrs ...*ir.Attr) func(g *ir.Graph, x *ir.Value, i int) *ir.Value {
		return func(g *ir.Graph, x *ir.Value, i int) *ir.Value {
			return g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "Conv",
				[]*ir.Value{x, weight(g, fmt.Sprint("w", i), 8, 8, 3, 3)}, attrs...)})
		}
	}
	pads := ir.IntsAttr("pads", 1, 1, 1, 1)
	padded, strided := conv(pads), conv(pads, ir.IntsAttr("strides", 2, 2))
	for _, c := range []struct {
		name  string
		layer func(g *ir.Graph, x *ir.Value, i int) *ir.Value
		want  int
	}{
		{"padding", padded, 3},
		{"no padding", conv(), 0},
		{"stride", strided, 0},
		{"residual", func(g *ir.Graph, x *ir.Value, i int) *ir.Value {
			return g.Insert(nil, "Add", []*ir.Value{x, padded(g, x, i)})
		}, 3},
		{"both branches of stride 2", func(g *ir.Graph, x *ir.Value, i int) *ir.Value {
			return g.Insert(nil, "Add", []*ir.Value{strided(g, x, i), strided(g, x, 10+i)})
		}, 0},
		{"transposed", func(g *ir.Graph, x *ir.Value, i int) *ir.Value {
			return g.Insert(nil, "ConvTranspose", []*ir.Value{x, weight(g, fmt.Sprint("w", i), 8, 8, 2, 2)},
				ir.IntsAttr("strides", 2, 2))
		}, 0},
		{"pool", func(g *ir.Graph, x *ir.Value, i int) *ir.Value {
			return g.Insert(nil, "MaxPool", []*ir.Value{padded(g, x, i)}, ir.IntsAttr("kernel_shape", 2, 2),
				ir.IntsAttr("strides", 2, 2))
		}, 0},
	} {
		for _, side := range []ir.Dim{{N: 64}, {N: -1, Param: "side"}, {N: -1}} {
			m := ir.NewModel()
			m.Opsets = []ir.Opset{{Version: 17}}
			g := m.Graph
			x := g.AddValue("x")
			x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 8}, side, side}}
			g.Inputs = []*ir.Value{x}
			h := g.Insert(nil, "Tanh", []*ir.Value{x})
			for i := range 3 {
				h = c.layer(g, h, i)
			}
			g.AddOutput(h)
			nodes, err := g.Order()
			if err != nil {
				t.Fatal(err)
			}
			layers := 0
			for _, r := range repetitions(nodes) {
				layers += len(r)
			}
			if layers != c.want {
				t.Errorf("%s, %+v: %d repeated layers, want %d", c.name, side, layers, c.want)
			}
		}
	}
}

// The layers of a model without numbered inputs or outputs are counted from 0.
func TestRemovedLayersAreCounted(t *testing.T) {
	m := stack(5)
	nodes, err := m.Graph.Order()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range repetitions(nodes) {
		if got := r.removal([]int{0, 2, 4}); got.Layers != 5 || !slices.Equal(got.Removed, []int{1, 3}) || got.Cached {
			t.Errorf("got %+v, want layers 1 and 3 of 5", got)
		}
	}
}

// TestLayersOfOtherShapesStay: layers that do not follow one of their kind are not repeated.
func TestLayersOfOtherShapesStay(t *testing.T) {
	m := stack(0)
	nodes, err := m.Graph.Order()
	if err != nil {
		t.Fatal(err)
	}
	if runs := repetitions(nodes); len(runs) != 0 {
		t.Errorf("%d runs in a model without repeated layers", len(runs))
	}
}

// Layers with an output between them are in separate repetitions: callers read what the layer before it makes.
func TestLayersBeforeAndAfterAnOutput(t *testing.T) {
	m := stack(4)
	sums := 0
	for n := range m.Graph.Nodes() {
		if n.Op.Is("Add") {
			if sums++; sums == 2 {
				m.Graph.AddOutput(n.Outputs[0])
			}
		}
	}
	if got, want := withoutHalf(t, m), []string{"in", "w1", "w3", "out"}; !slices.Equal(got, want) {
		t.Errorf("%v stay, want %v", got, want)
	}
}

// Layers of two branches, which read one value, are separate repetitions.
func TestLayersOfBranches(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	g.Inputs = []*ir.Value{x}
	product := func(x *ir.Value, name string) *ir.Value {
		s := ir.Spec{DType: ir.Float, Shape: []int64{8, 8}}
		return g.Insert(nil, "MatMul", []*ir.Value{x, g.AddConst(name, &ir.Tensor{Spec: s, Source: make(ir.Mem, s.Bytes())})})
	}
	stem := product(x, "stem")
	a := g.Insert(nil, "Relu", []*ir.Value{product(g.Insert(nil, "Relu", []*ir.Value{product(stem, "a0")}), "a1")})
	b := g.Insert(nil, "Tanh", []*ir.Value{product(g.Insert(nil, "Tanh", []*ir.Value{product(stem, "b0")}), "b1")})
	g.AddOutput(g.Insert(nil, "Add", []*ir.Value{a, b}))
	if got, want := withoutHalf(t, m), []string{"stem", "a1", "b1"}; !slices.Equal(got, want) {
		t.Errorf("%v stay, want %v", got, want)
	}
}

// Layers with outputs whose names have no numbers stay: callers could not know those that are left.
func TestLayersWithNamedOutputsStay(t *testing.T) {
	m := stack(4)
	names := []string{"first", "second", "third", "last"}
	for n := range m.Graph.Nodes() {
		if n.Op.Is("Relu") {
			n.Outputs[0].Name, names = names[0], names[1:]
			m.Graph.AddOutput(n.Outputs[0])
		}
	}
	if got, want := withoutHalf(t, m), []string{"in", "w0", "w1", "w2", "w3", "out"}; !slices.Equal(got, want) {
		t.Errorf("%v stay, want %v", got, want)
	}
}

// withoutHalf removes half of the layers and returns the constants that stay.
func withoutHalf(t *testing.T, m *ir.Model) []string {
	t.Helper()
	nodes, err := m.Graph.Order()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range repetitions(nodes) {
		r.removeOthers(Layers{Amount: 0.5}.keptPositions(len(r)))
	}
	if err := m.Verify(); err != nil {
		t.Fatal(err)
	}
	return constants(m)
}

// Layers are alike however their weights are stored: directly, behind copies that share a bias, transposed, or
// dequantized.
func TestLayersAreAlikeBehindConstantExpressions(t *testing.T) {
	const layers = 4
	for name, shared := range map[string]func(g *ir.Graph, bias, weight *ir.Value, layer int) (b, w *ir.Value){
		"copies of one bias": func(g *ir.Graph, bias, w *ir.Value, layer int) (*ir.Value, *ir.Value) {
			if layer > 0 {
				bias = g.Insert(nil, "Identity", []*ir.Value{bias})
			}
			return bias, w
		},
		"transposed matrices": func(g *ir.Graph, bias, w *ir.Value, layer int) (*ir.Value, *ir.Value) {
			if layer%2 > 0 {
				w = g.Insert(nil, "Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0))
			}
			return bias, w
		},
		"scaled matrices": func(g *ir.Graph, bias, w *ir.Value, _ int) (*ir.Value, *ir.Value) {
			return bias, g.Insert(nil, "Mul", []*ir.Value{w, bias})
		},
		"one expression": func(g *ir.Graph, bias, w *ir.Value, _ int) (*ir.Value, *ir.Value) {
			if len(bias.Uses()) == 0 {
				return g.Insert(nil, "Neg", []*ir.Value{bias}), w
			}
			return bias.Uses()[0].Node.Outputs[0], w
		},
	} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		g := m.Graph
		x := g.AddValue("x")
		g.Inputs = []*ir.Value{x}
		constant := func(name string, shape ...int64) *ir.Value {
			s := ir.Spec{DType: ir.Float, Shape: shape}
			return g.AddConst(name, &ir.Tensor{Spec: s, Source: make(ir.Mem, s.Bytes())})
		}
		h, bias := g.Insert(nil, "MatMul", []*ir.Value{x, constant("in", 3, 8)}), constant("bias", 8)
		for i := range layers {
			b, w := shared(g, bias, constant(fmt.Sprintf("w%d", i), 8, 8), i)
			y := g.Insert(nil, "Add", []*ir.Value{b, g.Insert(nil, "MatMul", []*ir.Value{h, w})})
			h = g.Insert(nil, "Add", []*ir.Value{h, g.Insert(nil, "Relu", []*ir.Value{y})})
		}
		g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{h, constant("out", 8, 2)}))
		nodes, err := g.Order()
		if err != nil {
			t.Fatal(err)
		}
		found := repetitions(nodes)
		if len(found) != 1 || len(found[0]) != layers {
			t.Errorf("%s: %d stacks of layers, want one of %d", name, len(found), layers)
			continue
		}
		found[0].removeOthers([]int{1, 3})
		if err := m.Verify(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"w0", "w2"} {
			if slices.Contains(constants(m), n) {
				t.Errorf("%s: %s of a removed layer is still there", name, n)
			}
		}
	}
}

// A constant expression whose text would double with each level is described in constant space.
func TestDeepConstantExpressions(t *testing.T) {
	m := stack(2)
	v := m.Graph.Consts()[0]
	for range 100 {
		v = m.Graph.Insert(nil, "Add", []*ir.Value{v, v})
	}
	nodes, err := m.Graph.Order()
	if err != nil {
		t.Fatal(err)
	}
	if f := newFlow(nodes); f.constant(v) == nil || len(f.constant(v).text) > 100 {
		t.Errorf("description %+.100v", f.constant(v))
	}
}
