package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// convolved is an input whose axes are permuted before a convolution; nil for a model without one.
func convolved(dims []ir.Dim, before ...func(*ir.Graph, *ir.Value) *ir.Value) Input {
	m := ir.NewModel()
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: dims}
	g.Inputs = []*ir.Value{x}
	v := x
	for _, f := range before {
		v = f(g, v)
	}
	w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1, 1, 1, 1}}, Source: ir.Floats(1)})
	g.AddOutput(g.Insert(nil, "Conv", []*ir.Value{v, w}))
	return Inputs(g)[0]
}

func op(typ string, attrs ...*ir.Attr) func(*ir.Graph, *ir.Value) *ir.Value {
	return func(g *ir.Graph, v *ir.Value) *ir.Value { return g.Insert(nil, typ, []*ir.Value{v}, attrs...) }
}

func dimsOf(sizes ...int64) []ir.Dim {
	dims := make([]ir.Dim, len(sizes))
	for i, n := range sizes {
		dims[i] = ir.Dim{N: n}
	}
	return dims
}

func TestLayoutOfInput(t *testing.T) {
	toFirst, toLast := op("Transpose", ir.IntsAttr("perm", 0, 3, 1, 2)), op("Transpose", ir.IntsAttr("perm", 0, 2, 3, 1))
	for name, c := range map[string]struct {
		in   Input
		want Layout
	}{
		"convolution":              {convolved(dimsOf(-1, 7, 9, 9)), CHW},
		"convolution, last axis 3": {convolved(dimsOf(-1, 7, 9, 3)), CHW},
		"transposed":               {convolved(dimsOf(-1, 9, 9, 7), op("Relu"), toFirst, op("Neg")), HWC},
		"transposed, first axis 3": {convolved(dimsOf(-1, 3, 9, 7), toFirst), HWC},
		"transposed twice":         {convolved(dimsOf(-1, 7, 9, 9), toLast, op("Resize"), toFirst), CHW},
		"width first": {convolved(dimsOf(-1, 9, 3, 9), op("Transpose", ir.IntsAttr("perm", 0, 2, 1, 3))),
			UnknownLayout},
		"reshaped":                  {convolved(dimsOf(-1, 9, 9, 3), op("Reshape")), HWC},
		"invalid permutation":       {convolved(dimsOf(-1, 9, 9, 3), op("Transpose", ir.IntsAttr("perm", 0, 9, 1, 2))), HWC},
		"by shape, first":           {input("x", "float[n,3,8,8]"), CHW},
		"by shape, last":            {input("x", "float[n,?,?,1]"), HWC},
		"by shape, volume":          {input("x", "float[n,4,8,8,8]"), CHW},
		"by shape, both":            {input("x", "float[n,3,8,3]"), UnknownLayout},
		"by shape, neither":         {input("x", "float[n,8,8,8]"), UnknownLayout},
		"rows":                      {input("x", "float[n,3,8]"), UnknownLayout},
		"unknown rank":              {input("x", "float"), UnknownLayout},
		"convolution, unknown rank": {convolved(nil), UnknownLayout},
	} {
		if got := c.in.Layout(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// planes are n samples of 3 channels, 2 rows and 5 columns whose elements are their positions, in a layout or
// flattened.
func planes(n int64, layout Layout, flat bool) *ir.Array {
	shape := []int64{n, 3, 2, 5}
	if layout == HWC {
		shape = []int64{n, 2, 5, 3}
	}
	a := ir.NewArray(ir.Float, shape...)
	for i := range ir.View[float32](a) {
		k := i % 30
		if layout == HWC {
			k = k%3*10 + k/3
		}
		ir.View[float32](a)[i] = float32(i/30*100 + k)
	}
	if flat {
		a.Shape = []int64{n, 30}
	}
	return a
}

// Samples have the model's layout, whatever that of the data is.
func TestChannelsAreMoved(t *testing.T) {
	for _, c := range []struct {
		data    Layout
		flat    bool
		model   Layout
		o       Options
		noted   bool
		because string // an error
	}{
		{data: CHW, model: CHW},
		{data: HWC, model: HWC},
		{data: CHW, model: HWC, noted: true},
		{data: HWC, model: CHW, noted: true},
		{data: CHW, model: HWC, o: Options{Layout: CHW}, noted: true},
		{data: HWC, model: HWC, o: Options{Layout: HWC}},
		{data: CHW, flat: true, model: HWC, o: Options{Layout: CHW, Reshape: []int64{3, 2, 5}}, noted: true},
		{data: CHW, flat: true, model: CHW, o: Options{Layout: CHW, Reshape: []int64{3, 2, 5}}},
		{data: HWC, flat: true, model: CHW, o: Options{Layout: HWC, Reshape: []int64{2, 5, 3}}, noted: true},
		{data: CHW, flat: true, model: HWC, o: Options{Reshape: []int64{3, 2, 5}}, noted: true},

		{data: CHW, flat: true, model: HWC, o: Options{Reshape: []int64{2, 5, 3}},
			because: "use --layout hwc --reshape 2,5,3, or --layout chw --reshape 3,2,5"},
		{data: CHW, flat: true, model: CHW, o: Options{Reshape: []int64{3, 2, 5}},
			because: "use --layout chw --reshape 3,2,5, or --layout hwc --reshape 2,5,3"},
		{data: CHW, flat: true, model: CHW, o: Options{Reshape: []int64{1, 3, 2, 5}},
			because: "use --layout chw --reshape 3,2,5"},
		{data: CHW, model: HWC, o: Options{Reshape: []int64{2, 5, 3}}, because: "use --layout chw without --reshape"},
		{data: CHW, model: HWC, o: Options{Reshape: []int64{2, 5, 3}, Layout: HWC},
			because: "use --layout chw without --reshape"},
		{data: HWC, model: CHW, o: Options{Reshape: []int64{3, 2, 5}}, because: "use --layout hwc without --reshape"},
		{data: HWC, model: HWC, o: Options{Reshape: []int64{3, 2, 5}}, because: "use --layout hwc without --reshape"},
		{data: CHW, model: HWC, o: Options{Layout: HWC}, because: "--layout hwc: a sample is [3 2 5]"},
		{data: CHW, model: HWC, o: Options{Layout: CHW, Reshape: []int64{2, 5, 3}},
			because: "--reshape has the axes of the data, as 3,HEIGHT,WIDTH"},
		{data: CHW, flat: true, model: HWC, o: Options{Layout: CHW},
			because: "set the shape of a sample of the data with --reshape, as 3,HEIGHT,WIDTH"},
		{data: CHW, model: CHW, o: Options{Layout: "nchw"}, because: "use chw or hwc"},
	} {
		in := input("x", "float[n,3,2,5]")
		if c.model == HWC {
			in = input("x", "float[n,2,5,3]")
		}
		path := npz(t, true, map[string]*ir.Array{"x": planes(5, c.data, c.flat)})
		s, err := Open(path, inputs(in), nil, c.o)
		if c.because != "" {
			requireError(t, err, c.because)
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		want := planes(5, c.model, false)
		got := all(t, s, Order{Size: 5})[0].Inputs["x"]
		if !slices.Equal(got.Shape, want.Shape) || !slices.Equal(ir.View[float32](got), ir.View[float32](want)) {
			t.Errorf("%+v: got %v of %v", c, got, ir.View[float32](got)[:30])
		}
		notes := strings.Join(s.Notes(), "\n")
		if text := "are " + string(c.data) + "; their channels were moved to " + string(c.model); strings.Contains(notes,
			text) != c.noted {
			t.Errorf("%+v: notes %q", c, notes)
		}
		if held := held(s, 1, 0); c.noted && held != 30*4*2 || !c.noted && held != 30*4 {
			t.Errorf("%+v: %d bytes are planned for a sample", c, held)
		}
		s.Close()
	}
}

// Mean and std are per channel of the model's layout, and conversion follows the move.
func TestMovedAndScaled(t *testing.T) {
	raw := ir.NewArray(ir.Uint8, 1, 3, 2, 2)
	for i := range raw.Data {
		raw.Data[i] = byte(i)
	}
	s := mustOpen(t, npz(t, false, map[string]*ir.Array{"x": raw}), inputs(input("x", "float[n,2,2,3]")), nil,
		Options{Mean: []float64{0, 4, 8}})
	got := ir.View[float32](all(t, s, Order{Size: 1})[0].Inputs["x"])
	if want := []float32{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A reshape that moves no channel needs no layout.
func TestReshapeWithoutChannels(t *testing.T) {
	for _, c := range []struct {
		shape   []int64
		reshape []int64
		in      string
	}{
		{[]int64{16}, []int64{1, 4, 4}, "float[n,1,4,4]"},
		{[]int64{16}, []int64{4, 4, 1}, "float[n,4,4,1]"},
		{[]int64{3, 16}, []int64{3, 4, 4}, "float[n,3,4,4]"},
		{[]int64{16, 3}, []int64{4, 4, 3}, "float[n,4,4,3]"},
		{[]int64{3}, []int64{3, 1, 1}, "float[n,3,1,1]"},
		{[]int64{4, 4}, []int64{16}, "float[n,16]"},
	} {
		path := npz(t, true, map[string]*ir.Array{"x": ir.NewArray(ir.Float, append([]int64{2}, c.shape...)...)})
		mustOpen(t, path, inputs(input("x", c.in)), nil, Options{Reshape: c.reshape})
	}
}

func TestLayoutIsForOneImage(t *testing.T) {
	two := npz(t, true, map[string]*ir.Array{"x": planes(2, CHW, false), "y": planes(2, CHW, false)})
	_, err := Open(two, inputs(input("x", "float[n,2,5,3]"), input("y", "float[n,3,2,5]")), nil, Options{Layout: CHW})
	requireError(t, err, "layout is for models of one input")
	_, err = Open(npz(t, true, map[string]*ir.Array{"x": ir.NewArray(ir.Float, 2, 5, 5, 5)}),
		inputs(input("x", "float[n,5,5,5]")), nil, Options{Layout: CHW})
	requireError(t, err, "the position of its channels is unknown")
}
