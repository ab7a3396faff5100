package half_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/backward"
	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/reduce"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// rows are the operators that are chunked here.
var rows = slices.Concat(backward.Ops(), conv.Ops(), elementwise.Ops(), reduce.Ops())

func find(id ir.OpID, version int64) (best *op.Op) {
	for i, o := range rows {
		if o.Domain == id.Domain && o.Type == id.Type && o.Since <= version && (best == nil || o.Since > best.Since) {
			best = &rows[i]
		}
	}
	return best
}

// halved is the chunked form of an operator, or the one that accepts Float16 itself.
func halved(id ir.OpID) *op.Op {
	if f, _ := half.Of(id.Type); f.Mixed != "" {
		return find(ir.OpID{Domain: own, Type: f.Mixed}, 1)
	}
	for _, o := range half.Ops(find) {
		if o.Type == id.Type {
			return &o
		}
	}
	return nil
}

type shapes [][]int64

// A trial is one node. The inputs and outputs of the form are Float16.
type trial struct {
	domain, typ string
	attrs       []*ir.Attr
	in          shapes
	loose       bool // sums may be in another order in other chunks
}

func ints(name string, is ...int64) *ir.Attr { return ir.IntsAttr(name, is...) }

const own = "mcompress"

var trials = []trial{
	{"", "Relu", nil, shapes{{3, 5, 41, 43}}, false},
	{"", "Gelu", nil, shapes{{3, 9001}}, false},
	{"", "Add", nil, shapes{{3, 5, 41, 43}, {3, 5, 41, 43}}, false},
	{"", "Mul", nil, shapes{{3, 5, 41, 43}, {3, 5, 1, 1}}, false},
	{own, "ReluGrad", nil, shapes{{3, 5, 41, 43}, {3, 5, 41, 43}}, false},
	{own, "SigmoidGrad", nil, shapes{{3, 5, 41, 43}, {3, 5, 41, 43}}, false},
	{"", "Conv", []*ir.Attr{ints("pads", 1, 1, 1, 1)}, shapes{{5, 24, 66, 70}, {26, 24, 3, 3}, {26}}, false},
	{"", "Conv", []*ir.Attr{ints("pads", 0, 2, 1, 1)}, shapes{{2, 24, 9, 150}, {25, 24, 3, 3}, {25}}, false},
	{"", "Conv", []*ir.Attr{ints("strides", 2, 2), ir.IntAttr("group", 16)}, shapes{{5, 16, 66, 70}, {16, 1, 3, 3}},
		false},
	{"", "Conv", []*ir.Attr{ints("pads", 3, 3, 2, 2), ints("strides", 2, 2)},
		shapes{{2, 40, 30, 29}, {9, 40, 7, 7}, {9}}, false},
	{"", "Conv", []*ir.Attr{ints("pads", 1, 1, 1, 1), ints("strides", 3, 3), ir.IntAttr("group", 2)},
		shapes{{2, 8, 17, 19}, {6, 4, 4, 3}}, false},
	{"", "Conv", []*ir.Attr{ints("pads", 1, 1, 1, 1)}, shapes{{9, 24, 16, 16}, {24, 24, 3, 3}}, false},
	{"", "Conv", []*ir.Attr{ir.IntAttr("group", 4)}, shapes{{1, 4, 150, 140}, {4, 1, 3, 3}}, false},
	{"", "Conv", nil, shapes{{3, 70, 17, 19}, {300, 70, 1, 1}}, false},
	{"", "Conv", nil, shapes{{3, 10, 301}, {7, 10, 5}}, false},
	{"", "Conv", nil, shapes{{2, 3, 9, 8, 7}, {4, 3, 3, 2, 2}}, false},
	{own, "ConvGrad", []*ir.Attr{ints("pads", 1, 1, 1, 1)}, shapes{{5, 24, 66, 70}, {26, 24, 3, 3}, {5, 26, 66, 70}},
		true},
	{own, "ConvGrad", []*ir.Attr{ints("pads", 1, 1, 1, 1)}, shapes{{9, 40, 7, 7}, {20, 40, 3, 3}, {9, 20, 7, 7}},
		false},
	{own, "ConvGrad", []*ir.Attr{ints("strides", 2, 2)}, shapes{{9, 24, 67, 71}, {20, 24, 1, 1}, {9, 20, 34, 36}},
		true},
	{own, "ConvGrad", nil, shapes{{3, 70, 17, 19}, {30, 70, 1, 1}, {3, 30, 17, 19}}, false},
	{own, "ConvGrad", []*ir.Attr{ints("pads", 1, 1, 1, 1), ints("strides", 2, 2)},
		shapes{{2, 10, 9, 12}, {8, 10, 3, 3}, {2, 8, 5, 6}}, false},
	{own, "ConvGrad", []*ir.Attr{ir.IntAttr("group", 12), ints("pads", 1, 1, 1, 1), ints("strides", 2, 2)},
		shapes{{2, 12, 9, 12}, {12, 1, 3, 3}, {2, 12, 5, 6}}, false},
	{own, "ConvGrad", nil, shapes{{2, 3, 9, 8, 7}, {4, 3, 3, 2, 2}, {2, 4, 7, 7, 6}}, false},
	{own, "ConvTransposeGrad", []*ir.Attr{ints("strides", 2, 2)},
		shapes{{9, 8, 34, 36}, {8, 20, 2, 2}, {9, 20, 68, 72}}, true},
	{own, "MaxPoolKeep", []*ir.Attr{ints("kernel_shape", 3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 1, 1)},
		shapes{{5, 40, 66, 70}}, false},
	{own, "MaxPoolGrad", []*ir.Attr{ints("kernel_shape", 2, 2), ints("strides", 2, 2), ints("shape", 5, 40, 66, 70)},
		shapes{{5, 40, 33, 35}, {5, 40, 33, 35}}, false},
	{own, "AveragePoolGrad", []*ir.Attr{ints("kernel_shape", 2, 2), ints("shape", 5, 40, 66, 70)},
		shapes{{5, 40, 65, 69}}, false},
	{"", "GlobalAveragePool", nil, shapes{{5, 40, 66, 70}}, false},
	{"", "BatchNormalization", nil, shapes{{5, 40, 66, 70}, {40}, {40}, {40}, {40}}, false},
	{own, "BatchNormTrain", nil, shapes{{5, 3, 66, 70}, {3}, {3}}, false},
	{own, "BatchNormGrad", nil, shapes{{5, 3, 66, 70}, {3}, {3}, {3}, {5, 3, 66, 70}}, false},
	{own, "BatchNormGrad", []*ir.Attr{ir.IntAttr("frozen", 1)}, shapes{{5, 3, 66, 70}, {3}, {3}, {3}, {5, 3, 66, 70}},
		false},
}

// The output is the operator's float32 result for the same values, rounded once.
func TestChunksEqualTheOperator(t *testing.T) {
	for i, c := range trials {
		t.Run(fmt.Sprintf("%s_%d", c.typ, i), c.check)
	}
}

func (c trial) check(t *testing.T) {
	f, _ := half.Of(c.typ)
	var wide, narrow []*ir.Array
	for i, shape := range c.in {
		a := numbers(uint64(i), shape)
		if c.typ == "MaxPoolGrad" && i == 1 {
			a = argmaxes(shape)
		}
		h := a
		if slices.Contains(f.In, i) {
			h = rounded(a)
			kernel.F32FromF16(ir.View[float32](a), ir.View[uint16](h))
		}
		wide, narrow = append(wide, a), append(narrow, h)
	}
	id := ir.OpID{Domain: c.domain, Type: c.typ}
	want := run(t, find(id, 28), id, c.attrs, wide, 2)
	attrs := append(slices.Clone(c.attrs), ir.StringAttr("domain", c.domain), ir.IntAttr("version", 28))
	var halves []int64
	for _, o := range f.Out {
		if o < len(want) && want[o].DType == ir.Float && f.Fits(want[o].Shape, want[0].Shape) {
			halves = append(halves, int64(o))
		}
	}
	attrs = append(attrs, half.Attributes(halves, true)...)
	var before []*ir.Array
	for _, workers := range []int{1, 2, 3} {
		got := run(t, halved(id), id, attrs, narrow, workers)
		for o, a := range got {
			if before != nil && !bytes.Equal(a.Data, before[o].Data) {
				t.Fatalf("output %d is not bit-identical with %d workers", o, workers)
			}
		}
		before = got
	}
	for o, a := range before {
		c.compare(t, o, a, want[o])
	}
}

// compare tolerates another order of sums, and one unit in the last place of Float16 for rounded ones.
func (c trial) compare(t *testing.T, o int, got, want *ir.Array) {
	t.Helper()
	exact := want
	if got.DType == ir.Float16 {
		exact = rounded(want)
	}
	if !c.loose {
		if !bytes.Equal(got.Data, exact.Data) {
			t.Errorf("output %d is not the rounded float32 result", o)
		}
		return
	}
	x, bound := ir.View[float32](want), 1e-5
	y := make([]float32, len(x))
	if got.DType == ir.Float16 {
		kernel.F32FromF16(y, ir.View[uint16](got))
		bound = 0x1p-10
	} else {
		y = ir.View[float32](got)
	}
	large := 0.0
	for _, v := range x {
		large = max(large, math.Abs(float64(v)))
	}
	for i := range x {
		if d := math.Abs(float64(y[i] - x[i])); !(d <= bound*math.Abs(float64(x[i]))+1e-5*large) {
			t.Fatalf("output %d: element %d is %v, want %v", o, i, y[i], x[i])
		}
	}
}

// run computes a node on scratch memory and outputs that are not cleared.
func run(t *testing.T, o *op.Op, id ir.OpID, attrs []*ir.Attr, in []*ir.Array, workers int) []*ir.Array {
	t.Helper()
	pool := op.NewPool(workers)
	defer pool.Close()
	n := op.NewNode(id, 28, attrs, nil)
	n.NumIn, n.Consumed = len(in), []bool{true, true, true, false, false}
	specs, err := o.Shape(n, in)
	if err != nil {
		t.Fatal(err)
	}
	n.Consumed = n.Consumed[:min(3, len(specs))]
	c := &op.Call{Node: n, Ctx: t.Context(), In: in, Pool: pool}
	for _, s := range specs[:len(n.Consumed)] {
		a := ir.NewArray(s.DType, s.Shape...)
		for i := range a.Data {
			a.Data[i] = 0xff
		}
		c.Out = append(c.Out, a)
	}
	if o.Work != nil {
		c.Work = ir.AlignedBytes(o.Work(n, in, workers))
		for i := range c.Work {
			c.Work[i] = 0xff
		}
	}
	if err := o.Run(c); err != nil {
		t.Fatal(err)
	}
	return c.Out
}

// argmaxes are kernel taps of 2×2 windows.
func argmaxes(shape []int64) *ir.Array {
	a := ir.NewArray(ir.Uint8, shape...)
	for i := range a.Data {
		a.Data[i] = byte(i * i % 4)
	}
	return a
}

// numbers are from a seeded distribution, positive so that they may be variances too.
func numbers(seed uint64, shape []int64) *ir.Array {
	a := ir.NewArray(ir.Float, shape...)
	r := rand.New(rand.NewPCG(seed, 9))
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(r.NormFloat64())
		if len(shape) == 1 {
			ir.View[float32](a)[i] = 0.5 + r.Float32()
		}
	}
	return a
}

func rounded(a *ir.Array) *ir.Array {
	h := ir.NewArray(ir.Float16, a.Shape...)
	kernel.F16FromF32(ir.View[uint16](h), ir.View[float32](a))
	return h
}

// Unsupported types and shapes are errors.
func TestInvalidNodesAreErrors(t *testing.T) {
	x, w := ir.NewArray(ir.Float16, 2, 3, 4, 4), ir.NewArray(ir.Float16, 3, 3, 1, 1)
	wide := ir.NewArray(ir.Float, 3, 3, 1, 1)
	version := []*ir.Attr{ir.StringAttr("domain", ""), ir.IntAttr("version", 22)}
	for _, c := range []struct {
		in    []*ir.Array
		attrs []*ir.Attr
	}{
		{[]*ir.Array{x, w}, version},
		{[]*ir.Array{x}, version},
		{[]*ir.Array{nil, wide}, version},
		{[]*ir.Array{x, wide}, append(slices.Clone(version), ints("halves", 1))},
		{[]*ir.Array{x, wide}, append(slices.Clone(version), ints("halves", -1))},
		{[]*ir.Array{x, wide}, []*ir.Attr{ir.StringAttr("domain", "unknown")}},
	} {
		n := op.NewNode(ir.OpID{Domain: half.Domain, Type: "ConvTranspose"}, 1, c.attrs, nil)
		n.NumIn, n.Consumed = len(c.in), []bool{true}
		if specs, err := halved(n.ID).Shape(n, c.in); err == nil {
			t.Errorf("%v %v: no error but %v", c.in, c.attrs, specs)
		}
	}
}
