package engine_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A layer is a convolution with quantized input and output.
type layer struct {
	x, w  []int64
	attrs []*ir.Attr
	act   string
	dt    ir.DType // of the quantized values
	whole bool     // the output of DequantizeLinear, or of Conv, has other consumers
}

func quantizedConvs() map[string]layer {
	ints := func(name string, v ...int64) *ir.Attr { return ir.IntsAttr(name, v...) }
	same := &ir.Attr{Name: "auto_pad", Type: ir.AttrString, S: "SAME_UPPER"}
	return map[string]layer{
		"pointwise":         {x: []int64{2, 32, 61, 67}, w: []int64{96, 32, 1, 1}, act: "Relu"},
		"winograd":          {x: []int64{1, 64, 61, 53}, w: []int64{64, 64, 3, 3}, attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1)}, act: "Relu"},
		"depthwise":         {x: []int64{1, 96, 71, 62}, w: []int64{96, 1, 3, 3}, attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1), ints("strides", 2, 2), ir.IntAttr("group", 96)}, dt: ir.Int8},
		"groups":            {x: []int64{3, 24, 50, 80}, w: []int64{48, 6, 3, 3}, attrs: []*ir.Attr{ints("pads", 2, 0, 1, 2), ints("dilations", 2, 1), ir.IntAttr("group", 4)}, act: "LeakyRelu"},
		"large kernel":      {x: []int64{1, 3, 101, 90}, w: []int64{64, 3, 7, 7}, attrs: []*ir.Attr{ints("strides", 3, 2), same}, act: "Relu"},
		"padding only":      {x: []int64{1, 32, 40, 60}, w: []int64{64, 32, 1, 3}, attrs: []*ir.Attr{ints("pads", 6, 1, 6, 1)}},
		"gaps":              {x: []int64{1, 32, 90, 60}, w: []int64{64, 32, 1, 1}, attrs: []*ir.Attr{ints("strides", 3, 2), same}},
		"several consumers": {x: []int64{1, 4, 8, 8}, w: []int64{4, 4, 1, 1}, whole: true},
	}
}

func (l layer) model() *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	b := &builder{m.Graph}
	scale := func(v float32) *ir.Value { return b.floats(nil, v) }
	zero := func(v byte) *ir.Value {
		return b.AddConst("z", &ir.Tensor{Spec: ir.Spec{DType: l.codes()}, Source: ir.Mem([]byte{v})})
	}
	x := b.input("x", l.codes(), "n", "c", "h", "w")
	weights, bias := make([]byte, (ir.Spec{DType: ir.Int8, Shape: l.w}).Bytes()), make([]float32, l.w[0])
	for i := range weights {
		weights[i] = byte(i * i >> 3)
	}
	for i := range bias {
		bias[i] = float32(i%5) - 2
	}
	w := b.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Int8, Shape: l.w}, Source: ir.Mem(weights)})
	xs := b.op("DequantizeLinear", x, scale(0.031), zero(113))
	y := b.Insert(nil, "Conv", []*ir.Value{xs, b.op("DequantizeLinear", w, scale(0.007)), b.floats([]int64{l.w[0]}, bias...)}, l.attrs...)
	if l.whole {
		b.output(b.op("Neg", xs))
	}
	if l.act != "" {
		y = b.op(l.act, y)
	}
	b.output(b.op("QuantizeLinear", y, scale(0.21), zero(7)))
	return m
}

func (l layer) codes() ir.DType {
	if l.dt == ir.Undefined {
		return ir.Uint8
	}
	return l.dt
}

// A quantized convolution by bands is bit-identical to the three operators that it replaces, with weights in memory and streamed, and never
// holds the float images as a whole.
func TestQDQConvIsBitIdenticalToUnfusedNodes(t *testing.T) {
	for name, l := range quantizedConvs() {
		t.Run(name, func(t *testing.T) {
			x := ir.NewArray(l.codes(), l.x...)
			for i := range x.Data {
				x.Data[i] = byte(128 + 90*math.Sin(float64(i)*0.37+float64(i%11)))
			}
			in := map[string]*ir.Array{"x": x}
			want, _ := runModel(t, l.model(), in, engine.Options{NoFusion: true})
			for _, o := range []engine.Options{{Workers: 1}, {Workers: 3}, {Workers: 2, Limits: memory.Limits{Weights: 1}}} {
				got, steps := runModel(t, l.model(), in, o)
				for k, w := range want {
					if g := got[k]; g.String() != w.String() || !bytes.Equal(g.Data, w.Data) {
						t.Errorf("%+v: output %q differs", o, k)
					}
				}
				if slices.Contains(steps, "mcompress.QuantizedConv") == l.whole {
					t.Errorf("steps: %v", steps)
				}
			}
			if n := distinct(want); n < 30 {
				t.Errorf("the output has only %d distinct quantized values", n)
			}
		})
	}
}

// distinct is the number of distinct bytes in the arrays.
func distinct(all map[string]*ir.Array) int {
	seen := map[byte]bool{}
	for _, a := range all {
		for _, c := range a.Data {
			seen[c] = true
		}
	}
	return len(seen)
}

// The memory of a quantized convolution is that of its quantized input and output, and of a few bands.
func TestQDQConvMemory(t *testing.T) {
	l := quantizedConvs()["pointwise"]
	e, err := engine.Open(t.Context(), l.model(), engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, size := range []int64{128, 512} {
		u, err := e.Usage(map[string]ir.Spec{"x": {DType: ir.Uint8, Shape: []int64{1, 32, size, size}}})
		if err != nil {
			t.Fatal(err)
		}
		if most := 96*size*size + 2<<20; u.Plan.Size > most {
			t.Errorf("%d bytes for images of %d×%d, want at most %d", u.Plan.Size, size, size, most)
		}
	}
}
