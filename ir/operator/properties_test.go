package operator_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/movement"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/quant"
	"github.com/mcompress/mcompress/internal/engine/reduce"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

var engineOps = slices.Concat(conv.Ops(), elementwise.Ops(), movement.Ops(), quant.Ops(), reduce.Ops())

// shape is that of the inputs: samples, channels and two spatial axes.
var shape = []int64{2, 3, 4, 4}

const size = 2 * 3 * 4 * 4

// floats are different numbers between -1 and 1, and integers different numbers from 1.
func floats() *ir.Array {
	x := make([]float32, size)
	for i := range x {
		x[i] = float32(i*37%size+1)/(size+1)*2 - 1
	}
	return ir.ArrayOf(x, shape...)
}

func fill[T ir.Element](value func(i int) T) *ir.Array {
	x := make([]T, size)
	for i := range x {
		x[i] = value(i)
	}
	return ir.ArrayOf(x, shape...)
}

func integers() *ir.Array { return fill(func(i int) uint8 { return uint8(i + 1) }) }
func truths() *ir.Array   { return fill(func(i int) bool { return i%3 == 0 }) }

func constant(v float32) *ir.Array { return optest.Scalar(v) }

// operands are the inputs after the first one, where an operator needs other than arrays like the first.
var operands = map[string][]*ir.Array{
	"BatchNormalization":           {four(1), four(2), four(3), four(4)},
	"CastLike":                     {optest.Array[float64](0)},
	"Clip":                         {constant(0.25), constant(0.5)},
	"Compress":                     {optest.Array(true, false, true)},
	"Expand":                       {optest.Array[int64](2, 3, 4, 4)},
	"Gather":                       {optest.Array[int64](1, 0)},
	"GatherElements":               {fill(func(i int) int64 { return int64(i % 2) })},
	"GatherND":                     {optest.Array[int64](1)},
	"InstanceNormalization":        {four(1), four(2)},
	"MaxRoiPool":                   {ir.ArrayOf([]float32{0, 0, 0, 3, 3}, 1, 5)},
	"Reshape":                      {optest.Array[int64](6, 16)},
	"ReverseSequence":              {optest.Array[int64](1, 2, 1)},
	"Slice":                        {optest.Array[int64](0), optest.Array[int64](1)},
	"Split":                        {optest.Array[int64](2)},
	"Squeeze":                      {},
	"Tile":                         {optest.Array[int64](1, 2, 1, 1)},
	"TopK":                         {optest.Array[int64](2)},
	"Unsqueeze":                    {optest.Array[int64](0)},
	"com.microsoft.BiasGelu":       {optest.Array[float32](1, 2, 3, 4)},
	"com.microsoft.FastGelu":       {optest.Array[float32](1, 2, 3, 4)},
	"com.microsoft.QLinearSigmoid": {constant(0.01), optest.Scalar[uint8](3), constant(0.004), optest.Scalar[uint8](0)},
	"com.microsoft.QLinearLeakyRelu": {
		constant(0.01), optest.Scalar[uint8](3), constant(0.01), optest.Scalar[uint8](3),
	},
}

func four(v float32) *ir.Array { return optest.Array(v, v+1, v+2) }

var attributes = map[string][]*ir.Attr{
	"AveragePool":                    {ir.IntsAttr("kernel_shape", 2, 2)},
	"BitShift":                       {ir.StringAttr("direction", "RIGHT")},
	"Cast":                           {ir.IntAttr("to", int64(ir.Double))},
	"Compress":                       {ir.IntAttr("axis", 1)},
	"Concat":                         {ir.IntAttr("axis", 1)},
	"DepthToSpace":                   {ir.IntAttr("blocksize", 1)},
	"LpPool":                         {ir.IntsAttr("kernel_shape", 2, 2)},
	"MaxRoiPool":                     {ir.IntsAttr("pooled_shape", 2, 2)},
	"MaxPool":                        {ir.IntsAttr("kernel_shape", 2, 2)},
	"Mod":                            {ir.IntAttr("fmod", 1)},
	"ReverseSequence":                {ir.IntAttr("batch_axis", 1), ir.IntAttr("time_axis", 0)},
	"SpaceToDepth":                   {ir.IntAttr("blocksize", 2)},
	"ThresholdedRelu":                {ir.FloatAttr("alpha", 0.5)},
	"com.microsoft.QLinearLeakyRelu": {ir.FloatAttr("alpha", 0.5)},
}

const variadicInputs = 2

// inputs are those of an operator for a first input x: the operands, or more arrays like x.
func inputs(name string, f *operator.Facts, x *ir.Array) []*ir.Array {
	in := []*ir.Array{x}
	if more, ok := operands[name]; ok {
		return append(in, more...)
	}
	number := 1
	if f.Elementwise == operator.Broadcasts || f.Variadic {
		number = variadicInputs
	}
	if name == "Where" {
		return append(in, floats(), like(floats()))
	}
	for len(in) < number {
		in = append(in, like(x))
	}
	return in
}

// like is an array of x's type with other elements.
func like(x *ir.Array) *ir.Array {
	y := ir.NewArray(x.DType, x.Shape...)
	from, to := elements(x), elements(y)
	for i := range to {
		copy(to[i], from[len(from)-1-i])
	}
	return y
}

// compute is the first output of an operator for these inputs, in the latest opset.
func compute(name string, in []*ir.Array) (*ir.Array, error) {
	c := optest.Case{Type: name, Version: 26, In: in, Attrs: attributes[name]}
	if domain, typ, ok := strings.Cut(name, "microsoft."); ok {
		c.Domain, c.Type, c.Version = domain+"microsoft", typ, 1
	}
	out, err := optest.Run(engineOps, c)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// supported are inputs that an operator accepts, and the output.
func supported(t *testing.T, name string, f *operator.Facts) (in []*ir.Array, y *ir.Array) {
	t.Helper()
	first := []*ir.Array{floats(), integers(), truths()}
	if name == "Acosh" {
		first[0] = fill(func(i int) float32 { return float32(i + 2) })
	}
	var failed error
	for _, x := range first {
		in := inputs(name, f, x)
		y, err := compute(name, in)
		if err == nil {
			return in, y
		}
		failed = err
	}
	t.Fatalf("%s: %v", name, failed)
	return nil, nil
}

// elements are the bytes of each element.
func elements(a *ir.Array) [][]byte {
	return slices.Collect(slices.Chunk(a.Data, int(a.Bytes()/a.Elems())))
}

// changed are the elements of two arrays that differ.
func changed(a, b *ir.Array) []int {
	var list []int
	x, y := elements(a), elements(b)
	for i := range x {
		if !bytes.Equal(x[i], y[i]) {
			list = append(list, i)
		}
	}
	return list
}

// perturbed are the inputs with another element i of the first one.
func perturbed(in []*ir.Array, i int) []*ir.Array {
	x := ir.NewArray(in[0].DType, in[0].Shape...)
	copy(x.Data, in[0].Data)
	copy(elements(x)[i], elements(like(x))[i])
	return append([]*ir.Array{x}, in[1:]...)
}

// rows calls test for each operator of a column that the engine has.
func rows(t *testing.T, column func(*operator.Facts) bool, test func(t *testing.T, name string, f *operator.Facts)) {
	t.Helper()
	tested := 0
	for _, name := range operator.Names() {
		f := operator.Lookup(operator.Parse(name))
		if !column(f) || !slices.ContainsFunc(engineOps, func(o op.Op) bool {
			return operator.Name(ir.OpID{Domain: o.Domain, Type: o.Type}) == name
		}) {
			continue
		}
		tested++
		t.Run(name, func(t *testing.T) { test(t, name, f) })
	}
	if tested == 0 {
		t.Error("no operators")
	}
}

func TestElementwiseOperatorsKeepPositions(t *testing.T) {
	rows(t, func(f *operator.Facts) bool {
		return f.Elementwise != operator.NotElementwise
	}, func(t *testing.T, name string, f *operator.Facts) {
		in, y := supported(t, name, f)
		if !slices.Equal(y.Shape, shape) {
			t.Fatalf("output of shape %v", y.Shape)
		}
		found := 0
		for i := range size {
			z, err := compute(name, perturbed(in, i))
			if err != nil {
				t.Fatal(err)
			}
			list := changed(y, z)
			found += len(list)
			if len(list) > 1 || len(list) == 1 && list[0] != i {
				t.Errorf("element %d changes outputs %v", i, list)
			}
		}
		if found == 0 && name != "IsInf" && name != "IsNaN" {
			t.Error("no element changes the output")
		}
	})
}

func TestMoves(t *testing.T) {
	rows(t, func(f *operator.Facts) bool {
		return f.Move != operator.Computes
	}, func(t *testing.T, name string, f *operator.Facts) {
		in, y := supported(t, name, f)
		x := in[0]
		switch f.Move {
		case operator.View:
			if !bytes.Equal(x.Data, y.Data) {
				t.Error("a view changes bytes")
			}
		case operator.Permutes:
			a, b := elements(x), elements(y)
			slices.SortFunc(a, bytes.Compare)
			slices.SortFunc(b, bytes.Compare)
			if !slices.EqualFunc(a, b, bytes.Equal) {
				t.Error("the output has other elements")
			}
		default:
			for _, e := range elements(y) {
				if !slices.ContainsFunc(in, func(in *ir.Array) bool {
					return in.DType == y.DType && slices.ContainsFunc(elements(in), func(o []byte) bool { return bytes.Equal(o, e) })
				}) {
					t.Fatalf("%v is no element of an input", e)
				}
			}
		}
	})
}

func TestChannelsAreIndependent(t *testing.T) {
	rows(t, func(f *operator.Facts) bool { return f.PerChannel }, func(t *testing.T, name string, f *operator.Facts) {
		in, y := supported(t, name, f)
		area, out := int(shape[2]*shape[3]), int(y.Elems())/int(shape[0]*shape[1])
		for i := range size {
			z, err := compute(name, perturbed(in, i))
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range changed(y, z) {
				if at/out%int(shape[1]) != i/area%int(shape[1]) {
					t.Errorf("element %d changes element %d of the output, in another channel", i, at)
				}
			}
		}
	})
}

func TestHomogeneousOperators(t *testing.T) {
	rows(t, func(f *operator.Facts) bool { return f.Homogeneous }, func(t *testing.T, name string, f *operator.Facts) {
		x := floats()
		double := ir.NewArray(x.DType, x.Shape...)
		for i, v := range ir.View[float32](x) {
			ir.View[float32](double)[i] = 2 * v
		}
		in := inputs(name, f, x)
		y, err := compute(name, in)
		if err != nil {
			t.Fatal(err)
		}
		z, err := compute(name, append([]*ir.Array{double}, in[1:]...))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range ir.View[float32](y) {
			if got := ir.View[float32](z)[i]; got-2*v > 1e-6 || 2*v-got > 1e-6 {
				t.Fatalf("element %d: %v of the double input, %v of the input", i, got, v)
			}
		}
	})
}

// Of inputs with a mean of 0, the outputs have a mean of a tenth of their magnitude or more.
func TestRectifiers(t *testing.T) {
	rows(t, func(f *operator.Facts) bool { return f.Rectifies }, func(t *testing.T, name string, f *operator.Facts) {
		x := ir.NewArray(ir.Float, shape...)
		for i := range ir.View[float32](x) {
			ir.View[float32](x)[i] = float32(2*(i%2) - 1)
		}
		in := inputs(name, f, x)
		switch name {
		case "Clip":
			in = []*ir.Array{x, ir.ArrayOf([]float32{0}), ir.ArrayOf([]float32{6})}
		case "PRelu":
			in = []*ir.Array{x, ir.ArrayOf([]float32{0.25}, 1)}
		}
		y, err := compute(name, in)
		if err != nil {
			t.Fatal(err)
		}
		sum, magnitude := 0.0, 0.0
		for _, v := range ir.View[float32](y) {
			if v == v { // Sqrt
				sum, magnitude = sum+float64(v), magnitude+float64(max(v, -v))
			}
		}
		if sum < magnitude/10 || sum == 0 {
			t.Errorf("sum of outputs %g, of magnitudes %g", sum, magnitude)
		}
	})
}

func TestCommutativeOperators(t *testing.T) {
	rows(t, func(f *operator.Facts) bool {
		return f.Commutative || f.Affine != operator.NotAffine
	}, func(t *testing.T, name string, f *operator.Facts) {
		in, y := supported(t, name, f)
		slices.Reverse(in)
		z, err := compute(name, in)
		if err != nil {
			t.Fatal(err)
		}
		if same := bytes.Equal(y.Data, z.Data); same != f.Commutative {
			t.Errorf("exchanged inputs have the same result: %v", same)
		}
	})
}

func TestNeutralElements(t *testing.T) {
	rows(t, func(f *operator.Facts) bool {
		return f.Affine != operator.NotAffine
	}, func(t *testing.T, name string, f *operator.Facts) {
		x := floats()
		neutral := float32(0)
		if f.Affine == operator.Factor {
			neutral = 1
		}
		y, err := compute(name, []*ir.Array{x, constant(neutral)})
		if err != nil || !bytes.Equal(x.Data, y.Data) {
			t.Errorf("%v is not neutral: %v", neutral, err)
		}
	})
}

func TestBoundedOperators(t *testing.T) {
	rows(t, func(f *operator.Facts) bool {
		return f.Bounded && !f.Predicate
	}, func(t *testing.T, name string, f *operator.Facts) {
		x := floats()
		for i := range ir.View[float32](x) {
			ir.View[float32](x)[i] *= 1e30
		}
		y, err := compute(name, inputs(name, f, x))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range ir.View[float32](y) {
			if !(v >= -2 && v <= 2) {
				t.Fatalf("element %d is %v", i, v)
			}
		}
	})
}
