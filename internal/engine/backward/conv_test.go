package backward

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// A trial is a node of the convolutions, pools and normalizations.
type trial struct {
	typ     string
	attrs   []*ir.Attr
	in      []*ir.Array // Float inputs also run as Double
	outputs int
}

func (c trial) String() string { return fmt.Sprint(c.typ, c.in) }

// trials are nodes of each operator, with shapes for each implementation.
func trials(t *testing.T) []trial {
	pads, strides := ir.IntsAttr("pads", 1, 1, 1, 1), ir.IntsAttr("strides", 2, 2)
	square := ir.IntsAttr("kernel_shape", 3, 3)
	list := []trial{
		{"ConvGrad", []*ir.Attr{pads}, []*ir.Array{gaussian(1, 3, 20, 40, 38), gaussian(2, 24, 20, 3, 3),
			gaussian(3, 3, 24, 40, 38)}, 3},
		{"ConvGrad", []*ir.Attr{pads, strides, ir.IntAttr("group", 2)},
			[]*ir.Array{gaussian(1, 2, 6, 40, 41), gaussian(2, 10, 3, 3, 3), gaussian(3, 2, 10, 20, 21)}, 3},
		{"ConvGrad", []*ir.Attr{pads, ir.IntAttr("group", 12)},
			[]*ir.Array{gaussian(1, 2, 12, 30, 31), gaussian(2, 12, 1, 3, 3), gaussian(3, 2, 12, 30, 31)}, 3},
		{"ConvGrad", nil, []*ir.Array{gaussian(1, 2, 40, 16, 16), gaussian(2, 30, 40, 1, 1),
			gaussian(3, 2, 30, 16, 16)}, 3},
		{"ConvGrad", nil, []*ir.Array{gaussian(1, 2, 3, 6, 7, 8), gaussian(2, 4, 3, 2, 2, 2),
			gaussian(3, 2, 4, 5, 6, 7)}, 3},
		{"ConvTransposeGrad", []*ir.Attr{pads, strides},
			[]*ir.Array{gaussian(1, 2, 18, 20, 21), gaussian(2, 18, 20, 4, 4), gaussian(3, 2, 20, 40, 42)}, 3},
		{"AveragePoolGrad", []*ir.Attr{square, strides, pads, ir.IntsAttr("shape", 2, 5, 40, 41)},
			[]*ir.Array{gaussian(1, 2, 5, 20, 21)}, 1},
		{"BatchNormTrain", nil, []*ir.Array{gaussian(1, 3, 7, 40, 41), gaussian(2, 7), gaussian(3, 7), gaussian(4, 7),
			gaussian(5, 7)}, 5},
		{"BatchNormTrain", nil, []*ir.Array{gaussian(1, 90, 7), gaussian(2, 7), gaussian(3, 7)}, 3},
		{"BatchNormGrad", nil, []*ir.Array{gaussian(1, 3, 7, 70, 71), gaussian(2, 7), gaussian(3, 7), gaussian(4, 7),
			gaussian(5, 3, 7, 70, 71)}, 3},
		{"BatchNormGrad", []*ir.Attr{ir.IntAttr("frozen", 1)},
			[]*ir.Array{gaussian(1, 3, 7, 9), gaussian(2, 7), gaussian(3, 7), gaussian(4, 7), gaussian(5, 3, 7, 9)}, 3},
	}
	for _, attrs := range pooled() {
		keep := trial{"MaxPoolKeep", attrs, []*ir.Array{gaussian(1, 2, 5, 40, 41)}, 2}
		out := keep.must(t, 2)
		grad := trial{"MaxPoolGrad", append(slices.Clone(attrs), ir.IntsAttr("shape", 2, 5, 40, 41)),
			[]*ir.Array{gaussian(1, out[0].Shape...), out[1]}, 1}
		list = append(list, keep, grad)
		if out[1].DType != ir.Uint8 {
			continue
		}
		norm := trial{"BatchNormPoolTrain", attrs,
			[]*ir.Array{gaussian(1, 2, 5, 40, 41), gaussian(2, 5), gaussian(3, 5), gaussian(4, 5), gaussian(5, 5)}, 6}
		made := norm.must(t, 2)
		list = append(list, norm, trial{"BatchNormPoolGrad", attrs,
			[]*ir.Array{norm.in[0], norm.in[1], made[2], made[3], gaussian(6, out[0].Shape...), made[1]}, 3})
	}
	return list
}

// pooled are attributes of pooling over images.
func pooled() [][]*ir.Attr {
	return [][]*ir.Attr{
		{ir.IntsAttr("kernel_shape", 2, 2), ir.IntsAttr("strides", 2, 2)},
		{ir.IntsAttr("kernel_shape", 3, 3), ir.IntsAttr("strides", 2, 2), ir.IntsAttr("pads", 1, 1, 1, 1)},
		{ir.IntsAttr("kernel_shape", 3, 2), ir.IntsAttr("dilations", 2, 9), ir.IntsAttr("strides", 2, 5),
			ir.IntsAttr("pads", 9, 5, 9, 20), ir.IntAttr("ceil_mode", 1)},
		{ir.IntsAttr("kernel_shape", 17, 19), ir.StringAttr("auto_pad", "SAME_LOWER")},
	}
}

func gaussian(seed uint64, shape ...int64) *ir.Array {
	r := rand.New(rand.NewPCG(seed, 0))
	a := ir.NewArray(ir.Float, shape...)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(r.NormFloat64())
	}
	return a
}

// double is the trial in Double.
func (c trial) double() trial {
	in := slices.Clone(c.in)
	for i, a := range in {
		if a != nil && a.DType == ir.Float {
			in[i] = ir.NewArray(ir.Double, a.Shape...)
			for k, v := range ir.View[float32](a) {
				ir.View[float64](in[i])[k] = float64(v)
			}
		}
	}
	c.in = in
	return c
}

// node is the trial as a node.
func (c trial) node(workers int) optest.Case {
	return optest.Case{Domain: domain, Type: c.typ, Version: 1, In: c.in, Attrs: c.attrs, Outputs: c.outputs,
		Workers: workers}
}

func (c trial) must(t *testing.T, workers int) []*ir.Array {
	t.Helper()
	out, err := optest.Run(Ops(), c.node(workers))
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return out
}

// agrees compares Float with Double, and checks that results are bit-identical for several numbers of workers.
func (c trial) agrees(t *testing.T) {
	t.Helper()
	got, want := c.must(t, 1), c.double().must(t, 2)
	for _, workers := range []int{2, 3} {
		for i, a := range c.must(t, workers) {
			if !bytes.Equal(a.Data, got[i].Data) {
				t.Errorf("%s: output %d is not bit-identical with %d workers", c, i, workers)
			}
		}
	}
	for i := range want {
		compare(t, fmt.Sprintf("%s: output %d", c, i), got[i], want[i])
	}
}

func TestFloatEqualsDouble(t *testing.T) {
	for _, c := range trials(t) {
		c.agrees(t)
	}
}

// compare compares Float with Double, with a tolerance of the largest summand.
func compare(t *testing.T, what string, got, want *ir.Array) {
	t.Helper()
	if got.DType != ir.Float {
		if !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s differs", what)
		}
		return
	}
	x, y := ir.View[float32](got), ir.View[float64](want)
	top := 1.0
	for i, v := range y {
		if v == -math.MaxFloat64 && x[i] == -math.MaxFloat32 { // the maximum of an empty window
			y[i] = float64(x[i])
			continue
		}
		if math.IsInf(v, 0) && v == float64(x[i]) { // the log-sum-exp of no key
			y[i], x[i] = 0, 0
			continue
		}
		top = max(top, math.Abs(v))
	}
	for i := range y {
		if !(math.Abs(float64(x[i])-y[i]) <= 3e-6*top) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, x[i], y[i])
		}
	}
}
