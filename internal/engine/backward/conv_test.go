package backward

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A trial is a node of the convolutions, pools and normalizations.
type trial struct {
	typ     string
	attrs   []*ir.Attr
	in      []*ir.Array // Float ones are made Double too
	outputs int
}

func (c trial) String() string { return fmt.Sprint(c.typ, c.in) }

// trials are of all operators, on shapes that take all of their forms.
func trials(t *testing.T) []trial {
	pads, strides := ir.IntsAttr("pads", 1, 1, 1, 1), ir.IntsAttr("strides", 2, 2)
	square := ir.IntsAttr("kernel_shape", 3, 3)
	list := []trial{
		{"ConvGrad", []*ir.Attr{pads}, []*ir.Array{gaussian(1, 3, 20, 40, 38), gaussian(2, 24, 20, 3, 3), gaussian(3, 3, 24, 40, 38)}, 3},
		{"ConvGrad", []*ir.Attr{pads, strides, ir.IntAttr("group", 2)}, []*ir.Array{gaussian(1, 2, 6, 40, 41), gaussian(2, 10, 3, 3, 3), gaussian(3, 2, 10, 20, 21)}, 3},
		{"ConvGrad", []*ir.Attr{pads, ir.IntAttr("group", 12)}, []*ir.Array{gaussian(1, 2, 12, 30, 31), gaussian(2, 12, 1, 3, 3), gaussian(3, 2, 12, 30, 31)}, 3},
		{"ConvGrad", nil, []*ir.Array{gaussian(1, 2, 40, 16, 16), gaussian(2, 30, 40, 1, 1), gaussian(3, 2, 30, 16, 16)}, 3},
		{"ConvGrad", nil, []*ir.Array{gaussian(1, 2, 3, 6, 7, 8), gaussian(2, 4, 3, 2, 2, 2), gaussian(3, 2, 4, 5, 6, 7)}, 3},
		{"ConvTransposeGrad", []*ir.Attr{pads, strides}, []*ir.Array{gaussian(1, 2, 18, 20, 21), gaussian(2, 18, 20, 4, 4), gaussian(3, 2, 20, 40, 42)}, 3},
		{"AveragePoolGrad", []*ir.Attr{square, strides, pads, ir.IntsAttr("shape", 2, 5, 40, 41)}, []*ir.Array{gaussian(1, 2, 5, 20, 21)}, 1},
		{"BatchNormTrain", nil, []*ir.Array{gaussian(1, 3, 7, 40, 41), gaussian(2, 7), gaussian(3, 7), gaussian(4, 7), gaussian(5, 7)}, 5},
		{"BatchNormTrain", nil, []*ir.Array{gaussian(1, 90, 7), gaussian(2, 7), gaussian(3, 7)}, 3},
		{"BatchNormGrad", nil, []*ir.Array{gaussian(1, 3, 7, 70, 71), gaussian(2, 7), gaussian(3, 7), gaussian(4, 7), gaussian(5, 3, 7, 70, 71)}, 3},
		{"BatchNormGrad", []*ir.Attr{ir.IntAttr("frozen", 1)}, []*ir.Array{gaussian(1, 3, 7, 9), gaussian(2, 7), gaussian(3, 7), gaussian(4, 7), gaussian(5, 3, 7, 9)}, 3},
	}
	for _, attrs := range pooled() {
		keep := trial{"MaxPoolKeep", attrs, []*ir.Array{gaussian(1, 2, 5, 40, 41)}, 2}
		out := keep.must(t, 2)
		grad := trial{"MaxPoolGrad", append(slices.Clone(attrs), ir.IntsAttr("shape", 2, 5, 40, 41)), []*ir.Array{gaussian(1, out[0].Shape...), out[1]}, 1}
		list = append(list, keep, grad)
		if out[1].DType != ir.Uint8 {
			continue
		}
		norm := trial{"BatchNormPoolTrain", attrs, []*ir.Array{gaussian(1, 2, 5, 40, 41), gaussian(2, 5), gaussian(3, 5), gaussian(4, 5), gaussian(5, 5)}, 6}
		made := norm.must(t, 2)
		list = append(list, norm, trial{"BatchNormPoolGrad", attrs, []*ir.Array{norm.in[0], norm.in[1], made[2], made[3], gaussian(6, out[0].Shape...), made[1]}, 3})
	}
	return list
}

// pooled are attributes of pools of images.
func pooled() [][]*ir.Attr {
	return [][]*ir.Attr{
		{ir.IntsAttr("kernel_shape", 2, 2), ir.IntsAttr("strides", 2, 2)},
		{ir.IntsAttr("kernel_shape", 3, 3), ir.IntsAttr("strides", 2, 2), ir.IntsAttr("pads", 1, 1, 1, 1)},
		{ir.IntsAttr("kernel_shape", 3, 2), ir.IntsAttr("dilations", 2, 9), ir.IntsAttr("strides", 2, 5), ir.IntsAttr("pads", 9, 5, 9, 20), ir.IntAttr("ceil_mode", 1)},
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

// run computes the node as an engine would, on memory that is not clear.
func (c trial) run(workers int) ([]*ir.Array, error) {
	i := slices.IndexFunc(Ops(), func(o op.Op) bool { return o.Type == c.typ })
	row := Ops()[i]
	n := op.NewNode(ir.OpID{Domain: domain, Type: c.typ}, 1, c.attrs, nil)
	n.NumIn = len(c.in)
	for range c.outputs {
		n.Consumed = append(n.Consumed, true)
	}
	specs, err := row.Shape(n, c.in)
	if err != nil {
		return nil, err
	}
	pool := op.NewPool(workers)
	defer pool.Close()
	call := &op.Call{Node: n, Ctx: context.Background(), In: c.in, Pool: pool}
	for _, s := range specs[:c.outputs] {
		a := ir.NewArray(s.DType, s.Shape...)
		soil(a.Data)
		call.Out = append(call.Out, a)
	}
	if row.Work != nil {
		call.Work = ir.AlignedBytes(row.Work(n, c.in, workers))
		soil(call.Work)
	}
	return call.Out, row.Run(call)
}

// soil makes numbers that are none.
func soil(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

func (c trial) must(t *testing.T, workers int) []*ir.Array {
	t.Helper()
	out, err := c.run(workers)
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return out
}

// agrees compares Float with Double, and the bits at several numbers of workers.
func (c trial) agrees(t *testing.T) {
	t.Helper()
	got, want := c.must(t, 1), c.double().must(t, 2)
	for _, workers := range []int{2, 3} {
		for i, a := range c.must(t, workers) {
			if !bytes.Equal(a.Data, got[i].Data) {
				t.Errorf("%s: output %d has other bits with %d workers", c, i, workers)
			}
		}
	}
	for i := range want {
		compare(t, fmt.Sprintf("%s: output %d", c, i), got[i], want[i])
	}
}

func TestFloatIsDoubleAtAnyNumberOfWorkers(t *testing.T) {
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
		if v == -math.MaxFloat64 && x[i] == -math.MaxFloat32 { // the maximum of nothing
			y[i] = float64(x[i])
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

// Nodes that almost work give an error, or a result.
func TestBrokenConvolutionsDoNotPanic(t *testing.T) {
	for i, c := range trials(t) {
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			c := c.broken(r)
			if text := c.panics(); text != "" {
				t.Fatalf("%s %v: %s", c, c.attrs, text)
			}
		}
	}
}

// broken has other attributes, or inputs of other shapes and types.
func (c trial) broken(r *rand.Rand) trial {
	odd := []int64{-1 << 40, -2, -1, 0, 1, 2, 3, 7, 1 << 20, 1 << 31, 1 << 62}
	pick := func() int64 { return odd[r.IntN(len(odd))] }
	c.attrs, c.in = slices.Clone(c.attrs), slices.Clone(c.in)
	for _, name := range []string{"pads", "strides", "dilations", "kernel_shape", "output_padding", "output_shape", "shape"} {
		if r.IntN(8) == 0 {
			list := make([]int64, r.IntN(7))
			for i := range list {
				list[i] = pick()
			}
			c.attrs = append(c.attrs, ir.IntsAttr(name, list...))
		}
	}
	if r.IntN(6) == 0 {
		c.attrs = append(c.attrs, ir.IntAttr("group", pick()))
	}
	i := r.IntN(len(c.in))
	switch r.IntN(4) {
	case 0:
		c.in[i] = nil
	case 1:
		c.in = c.in[:i]
	case 2:
		c.in[i] = gaussian(7, []int64{2, int64(r.IntN(4)), 3, int64(r.IntN(5))}[:r.IntN(5)]...)
	case 3:
		c.in[i] = ir.NewArray([]ir.DType{ir.Int64, ir.Double, ir.Uint8, ir.String}[r.IntN(4)], 2, 3, 4, 4)
	}
	return c
}

// panics returns the message of the node's panic, empty if there is none. Large outputs are not computed.
func (c trial) panics() (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	i := slices.IndexFunc(Ops(), func(o op.Op) bool { return o.Type == c.typ })
	n := op.NewNode(ir.OpID{Domain: domain, Type: c.typ}, 1, c.attrs, nil)
	n.Consumed = make([]bool, c.outputs)
	specs, err := Ops()[i].Shape(n, c.in)
	if err != nil {
		return ""
	}
	for _, s := range specs {
		if s.Elems() > 1<<16 {
			return ""
		}
	}
	_, _ = c.run(2)
	return ""
}
