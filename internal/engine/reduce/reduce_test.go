package reduce

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// results computes all outputs or fails the test.
func results(t *testing.T, c optest.Case) []*ir.Array {
	t.Helper()
	out, err := optest.Run(Ops(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Type, err)
	}
	return out
}

// compute is output 0 of an operator of ai.onnx.
func compute(t *testing.T, typ string, version int64, in []*ir.Array, attrs ...*ir.Attr) *ir.Array {
	t.Helper()
	return results(t, optest.Case{Type: typ, Version: version, In: in, Attrs: attrs})[0]
}

func arrays(a ...*ir.Array) []*ir.Array { return a }

// cast is a as another type.
func cast(t *testing.T, a *ir.Array, to ir.DType) *ir.Array {
	t.Helper()
	out, err := optest.Run(elementwise.Ops(), optest.Case{Type: "Cast", Version: 28, In: arrays(a),
		Attrs: []*ir.Attr{ir.IntAttr("to", int64(to))}})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func elements(t *testing.T, a *ir.Array) []float64 {
	t.Helper()
	return ir.View[float64](cast(t, a, ir.Double))
}

func shaped(a *ir.Array, shape ...int64) *ir.Array {
	return &ir.Array{DType: a.DType, Shape: shape, Data: a.Data, Text: a.Text}
}

// check requires elements within a relative and absolute tolerance of epsilon.
func check(t *testing.T, what string, got *ir.Array, epsilon float64, want ...float64) {
	t.Helper()
	g := elements(t, got)
	equal := func(a, b float64) bool {
		return a == b || a != a && b != b || math.Abs(a-b) <= epsilon*(1+math.Abs(b))
	}
	if !slices.EqualFunc(g, want, equal) {
		t.Errorf("%s: got %v, want %v", what, g, want)
	}
}

// random generates numbers that every type of at least 8 bits can represent: small integers.
func random(t *testing.T, dt ir.DType, shape ...int64) *ir.Array {
	rng := rand.New(rand.NewPCG(3, uint64(op.Product(shape))))
	x := make([]int8, op.Product(shape))
	for i := range x {
		x[i] = int8(1 + rng.IntN(4))
	}
	return cast(t, ir.ArrayOf(x, shape...), dt)
}

// smooth generates float32 numbers between -4 and 4.
func smooth(shape ...int64) *ir.Array {
	rng := rand.New(rand.NewPCG(5, uint64(op.Product(shape))))
	x := make([]float32, op.Product(shape))
	for i := range x {
		x[i] = rng.Float32()*8 - 4
	}
	return ir.ArrayOf(x, shape...)
}

// formulas are the reductions of a list, by the specification.
var formulas = map[string]func(x []float64) float64{
	"ReduceSum": func(x []float64) float64 { return total(x, func(v float64) float64 { return v }) },
	"ReduceMean": func(x []float64) float64 {
		return total(x,
			func(v float64) float64 { return v }) / float64(len(x))
	},
	"ReduceL1":        func(x []float64) float64 { return total(x, math.Abs) },
	"ReduceSumSquare": func(x []float64) float64 { return total(x, func(v float64) float64 { return v * v }) },
	"ReduceL2": func(x []float64) float64 {
		return math.Sqrt(total(x, func(v float64) float64 { return v * v }))
	},
	"ReduceLogSum":    func(x []float64) float64 { return math.Log(total(x, func(v float64) float64 { return v })) },
	"ReduceLogSumExp": func(x []float64) float64 { return math.Log(total(x, math.Exp)) },
	"ReduceMax":       func(x []float64) float64 { return slices.Max(x) },
	"ReduceMin":       func(x []float64) float64 { return slices.Min(x) },
	"ReduceProd": func(x []float64) float64 {
		p := 1.0
		for _, v := range x {
			p *= v
		}
		return p
	},
}

func total(x []float64, f func(float64) float64) float64 {
	s := 0.0
	for _, v := range x {
		s += f(v)
	}
	return s
}

// groups are the elements of each output of a reduction, by the index of each element alone.
func groups(x []float64, shape []int64, axes []int64) [][]float64 {
	kept := slices.Clone(shape)
	for _, a := range axes {
		kept[(a+int64(len(shape)))%int64(len(shape))] = 1
	}
	out := make([][]float64, op.Product(kept))
	steps, outSteps := op.Strides(shape), op.Strides(kept)
	for i, v := range x {
		o := int64(0)
		for axis := range shape {
			if kept[axis] > 1 {
				o += int64(i) / steps[axis] % shape[axis] * outSteps[axis]
			}
		}
		out[o] = append(out[o], v)
	}
	return out
}

func TestReductionsEqualTheirDefinitions(t *testing.T) {
	types := map[ir.DType]float64{ir.Float: 1e-6, ir.Double: 1e-12, ir.Float16: 2e-3, ir.BFloat16: 2e-2, ir.Int32: 0,
		ir.Uint64: 0}
	for name, formula := range formulas {
		for dt, epsilon := range types {
			for _, c := range []struct{ shape, axes []int64 }{
				{[]int64{2, 3, 4}, []int64{0, 1, 2}},
				{[]int64{2, 3, 4}, []int64{-1}},
				{[]int64{2, 3, 4}, []int64{0}},
				{[]int64{2, 3, 4}, []int64{0, 2}},
				{[]int64{2, 3, 4}, []int64{1}},
				{[]int64{2, 1, 2, 1, 3}, []int64{0, 3, -1}},
				{[]int64{3, 1, 600}, []int64{0}},
			} {
				x := random(t, dt, c.shape...)
				var want []float64
				for _, g := range groups(elements(t, x), c.shape, c.axes) {
					want = append(want, formula(g))
				}
				want = elements(t, cast(t, optest.Array(want...), dt))
				check(t, name+" of "+x.String(), compute(t, name, 11, arrays(x), ir.IntsAttr("axes", c.axes...)),
					epsilon, want...)
				check(t, name+" of "+x.String(), compute(t, name, 18, arrays(x, optest.Array(c.axes...)),
					ir.IntAttr("keepdims", 0)), epsilon, want...)
			}
		}
	}
}

func TestReducedShapes(t *testing.T) {
	x, none := smooth(2, 3, 4), optest.Array[int64]()
	for _, c := range []struct {
		version int64
		in      []*ir.Array
		attrs   []*ir.Attr
		want    []int64
	}{
		{11, arrays(x), nil, []int64{1, 1, 1}},
		{11, arrays(x), []*ir.Attr{ir.IntsAttr("axes", 1)}, []int64{2, 1, 4}},
		{13, arrays(x, optest.Array[int64](1)), []*ir.Attr{ir.IntAttr("keepdims", 0)}, []int64{2, 4}},
		{13, arrays(x), []*ir.Attr{ir.IntsAttr("axes", 1)}, []int64{1, 1, 1}},
		{13, arrays(x, none), nil, []int64{1, 1, 1}},
		{13, arrays(x, none), []*ir.Attr{ir.IntAttr("noop_with_empty_axes", 1)}, []int64{2, 3, 4}},
	} {
		if got := compute(t, "ReduceSum", c.version, c.in, c.attrs...); !slices.Equal(got.Shape, c.want) {
			t.Errorf("opset %d, %v: shape %v, want %v", c.version, c.in, got.Shape, c.want)
		}
	}
}

// Without axes there is nothing to sum, but squares and logarithms are computed.
func TestReductionWithoutAxes(t *testing.T) {
	x, noop := optest.Array[float32](-2, 3), ir.IntAttr("noop_with_empty_axes", 1)
	check(t, "ReduceSumSquare", compute(t, "ReduceSumSquare", 18, arrays(x), noop), 0, 4, 9)
	check(t, "ReduceL1", compute(t, "ReduceL1", 18, arrays(x), noop), 0, 2, 3)
	check(t, "ReduceMean", compute(t, "ReduceMean", 18, arrays(x), noop), 0, -2, 3)
}

func TestReductionsOfEmptyTensors(t *testing.T) {
	axes := optest.Array[int64](1)
	for name, want := range map[string]float64{
		"ReduceSum": 0, "ReduceProd": 1, "ReduceL2": 0, "ReduceMax": math.Inf(-1), "ReduceMin": math.Inf(1),
		"ReduceLogSum": math.Inf(-1), "ReduceLogSumExp": math.Inf(-1), "ReduceMean": math.NaN(),
	} {
		check(t, name, compute(t, name, 18, arrays(ir.NewArray(ir.Float, 2, 0), axes)), 0, want, want)
	}
	check(t, "int8", compute(t, "ReduceMax", 18, arrays(ir.NewArray(ir.Int8, 1, 0), axes)), 0, math.MinInt8)
	check(t, "uint32", compute(t, "ReduceMin", 18, arrays(ir.NewArray(ir.Uint32, 1, 0), axes)), 0, math.MaxUint32)
	check(t, "bool", compute(t, "ReduceMax", 20, arrays(ir.NewArray(ir.Bool, 1, 0), axes)), 0, 0)
}

func TestBoolsAndNaN(t *testing.T) {
	b := ir.ArrayOf([]bool{true, false, false, false}, 2, 2)
	check(t, "max", compute(t, "ReduceMax", 20, arrays(b, optest.Array[int64](1))), 0, 1, 0)
	check(t, "min", compute(t, "ReduceMin", 20, arrays(b, optest.Array[int64](1))), 0, 0, 0)
	x := shaped(optest.Array[float32](1, float32(math.NaN()), 3, 4), 2, 2)
	for _, name := range []string{"ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp"} {
		if got := elements(t, compute(t, name, 18, arrays(x, optest.Array[int64](0)))); !math.IsNaN(got[1]) ||
			math.IsNaN(got[0]) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestIntegersWrapAround(t *testing.T) {
	x := optest.Array[int32](math.MaxInt32, 1)
	check(t, "ReduceSum", compute(t, "ReduceSum", 13, arrays(x)), 0, math.MinInt32)
	check(t, "ReduceMean", compute(t, "ReduceMean", 18, arrays(optest.Array[int32](-3, 0))), 0, -1)
	check(t, "uint64", compute(t, "ReduceMean", 18, arrays(optest.Array[uint64](1<<63, 0))), 0, 1<<62)
}

// A million times 0.1 added sequentially in float32 is 100958.
func TestLongSumsAreAccurate(t *testing.T) {
	x := ir.NewArray(ir.Float, 1000, 1000)
	for i := range ir.View[float32](x) {
		ir.View[float32](x)[i] = 0.1
	}
	want := float64(float32(1e6 * float64(float32(0.1))))
	check(t, "all", compute(t, "ReduceSum", 13, arrays(x)), 0, want)
	columns := elements(t, compute(t, "ReduceSum", 13, arrays(x, optest.Array[int64](0))))
	if w := float64(float32(1e3 * float64(float32(0.1)))); columns[999] != w {
		t.Errorf("a column: %v, want %v", columns[999], w)
	}
	check(t, "squares", compute(t, "ReduceL2", 18, arrays(x)), 1e-7,
		math.Sqrt(1e6*float64(float32(0.1))*float64(float32(0.1))))
}

func TestLogSumExpOfLargeNumbers(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float, ir.Double} {
		x := cast(t, optest.Array[float32](1000, 1000, -1000), dt)
		check(t, dt.String(), compute(t, "ReduceLogSumExp", 18, arrays(x)), 1e-7, 1000+math.Ln2)
		check(t, "-Inf", compute(t, "ReduceLogSumExp", 18,
			arrays(cast(t, optest.Array(math.Inf(-1), math.Inf(-1)), dt))), 0, math.Inf(-1))
	}
}

// Results depend neither on the number of workers nor on in-place computation.
func TestWorkersAndInPlaceAreBitIdentical(t *testing.T) {
	x, row := smooth(90, 7, 300), smooth(300)
	for _, c := range []optest.Case{
		{Type: "ReduceSum", Version: 13, In: arrays(x)},
		{Type: "ReduceSum", Version: 13, In: arrays(x, optest.Array[int64](0, 1))},
		{Type: "ReduceLogSumExp", Version: 18, In: arrays(x, optest.Array[int64](0, 2))},
		{Type: "Softmax", Version: 13, In: arrays(x), InPlace: 1},
		{Type: "Softmax", Version: 13, In: arrays(x), Attrs: []*ir.Attr{ir.IntAttr("axis", 1)}, InPlace: 1},
		{Type: "Hardmax", Version: 13, In: arrays(x), Attrs: []*ir.Attr{ir.IntAttr("axis", 0)}, InPlace: 1},
		{Type: "CumSum", Version: 14, In: arrays(x, optest.Scalar[int64](0)), InPlace: 1},
		{Type: "LayerNormalization", Version: 17, In: arrays(x, row, row), InPlace: 1},
		{Type: "InstanceNormalization", Version: 6, In: arrays(x, smooth(7), smooth(7)), InPlace: 1},
		{Type: "BatchNormalization", Version: 15, In: arrays(x, smooth(7), smooth(7), smooth(7),
			random(t, ir.Float, 7)), Attrs: []*ir.Attr{ir.IntAttr("training_mode", 1)}, InPlace: 1},
		{Type: "MeanVarianceNormalization", Version: 13, In: arrays(x), Attrs: []*ir.Attr{ir.IntsAttr("axes", 0, 2)},
			InPlace: 1},
		{Type: "TopK", Version: 11, In: arrays(x, optest.Array[int64](3)), Attrs: []*ir.Attr{ir.IntAttr("axis", 0)}},
		{Type: "LRN", Version: 13, In: arrays(x), Attrs: []*ir.Attr{ir.IntAttr("size", 3)}},
	} {
		inPlace := c.InPlace
		c.InPlace = 0
		want := results(t, c)
		for _, workers := range []int{2, 5} {
			v := c
			v.Workers, v.InPlace = workers, inPlace
			v.In = slices.Clone(c.In)
			v.In[0] = c.In[0].Clone()
			if got := results(t, v); !bytes.Equal(got[0].Data, want[0].Data) {
				t.Errorf("%s on %d workers differs", c.Type, workers)
			}
		}
	}
}
