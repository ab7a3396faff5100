package engine_test

import (
	"bytes"
	"math"
	"math/rand/v2"
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
	also  bool     // the output of DequantizeLinear has another consumer
}

func quantizedConvs() map[string]layer {
	ints := func(name string, v ...int64) *ir.Attr { return ir.IntsAttr(name, v...) }
	same := &ir.Attr{Name: "auto_pad", Type: ir.AttrString, S: "SAME_UPPER"}
	return map[string]layer{
		"pointwise": {x: []int64{2, 32, 61, 67}, w: []int64{96, 32, 1, 1}, act: "Relu"},
		"winograd": {x: []int64{1, 64, 61, 53}, w: []int64{64, 64, 3, 3},
			attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1)}, act: "Relu"},
		"depthwise": {x: []int64{1, 96, 71, 62}, w: []int64{96, 1, 3, 3},
			attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1), ints("strides", 2, 2), ir.IntAttr("group", 96)}, dt: ir.Int8},
		"groups": {x: []int64{3, 24, 50, 80}, w: []int64{48, 6, 3, 3},
			attrs: []*ir.Attr{ints("pads", 2, 0, 1, 2), ints("dilations", 2, 1), ir.IntAttr("group", 4)},
			act:   "LeakyRelu"},
		"large kernel": {x: []int64{1, 3, 101, 90}, w: []int64{64, 3, 7, 7},
			attrs: []*ir.Attr{ints("strides", 3, 2), same}, act: "Relu"},
		"padding only": {x: []int64{1, 32, 40, 60}, w: []int64{64, 32, 1, 3},
			attrs: []*ir.Attr{ints("pads", 6, 1, 6, 1)}},
		"gaps": {x: []int64{1, 32, 90, 60}, w: []int64{64, 32, 1, 1},
			attrs: []*ir.Attr{ints("strides", 3, 2), same}},
		"blocks of depth": {x: []int64{1, 130, 9, 11}, w: []int64{32, 130, 3, 3},
			attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1), ints("dilations", 1, 2)}},
		"adjacent windows": {x: []int64{2, 48, 17, 15}, w: []int64{48, 1, 3, 3},
			attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1), ir.IntAttr("group", 48)}, act: "Relu"},
		"few channels": {x: []int64{1, 24, 18, 14}, w: []int64{24, 1, 5, 5},
			attrs: []*ir.Attr{ints("pads", 2, 2, 2, 2), ir.IntAttr("group", 24)}, dt: ir.Int8},
		"8 channels": {x: []int64{1, 8, 18, 22}, w: []int64{8, 1, 3, 3},
			attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1), ir.IntAttr("group", 8)}},
		"16 channels": {x: []int64{1, 16, 18, 22}, w: []int64{16, 1, 3, 3},
			attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1), ir.IntAttr("group", 16)}, dt: ir.Int8},
		"copied pixels": {x: []int64{2, 18, 9, 7}, w: []int64{40, 18, 1, 1}, act: "Relu"},
		"signed pixels": {x: []int64{2, 64, 14, 14}, w: []int64{40, 64, 1, 1}, dt: ir.Int8},
		"rows of 7": {x: []int64{1, 64, 7, 7}, w: []int64{200, 64, 3, 3},
			attrs: []*ir.Attr{ints("pads", 1, 1, 1, 1)}, dt: ir.Int8},
		"several consumers": {x: []int64{1, 4, 8, 8}, w: []int64{4, 4, 1, 1}, also: true},
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
	y := b.Insert(nil, "Conv", []*ir.Value{xs, b.op("DequantizeLinear", w, scale(0.007)),
		b.floats([]int64{l.w[0]}, bias...)}, l.attrs...)
	if l.also {
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

// A quantized convolution agrees with the operators that it replaces, with weights in memory and streamed:
// bit-identically if it computes floats by bands; if it sums integers, within one quantization level, for the few
// values that are halfway between two.
func TestQDQConvAgreesWithUnfusedNodes(t *testing.T) {
	for name, l := range quantizedConvs() {
		t.Run(name, func(t *testing.T) {
			x := ir.NewArray(l.codes(), l.x...)
			for i := range x.Data {
				x.Data[i] = byte(128 + 90*math.Sin(float64(i)*0.37+float64(i%11)))
			}
			in := map[string]*ir.Array{"x": x}
			want, _ := runModel(t, l.model(), in, engine.Options{NoFusion: true})
			operator, rounding := "mcompress.IntegerConv", 1
			if l.act == "LeakyRelu" {
				operator, rounding = "mcompress.QuantizedConv", 0
			}
			var first map[string]*ir.Array
			for _, o := range []engine.Options{{Workers: 1}, {Workers: 3},
				{Workers: 2, Limits: memory.Limits{Weights: 1}}} {
				got, steps := runModel(t, l.model(), in, o)
				for k, w := range want {
					if n, values := levelsApart(w, got[k]); n > rounding || values > 1+len(w.Data)/10000 {
						t.Errorf("%+v: %d of %d values of output %q differ, by up to %d levels", o, values,
							len(w.Data), k, n)
					}
					if first != nil && !bytes.Equal(first[k].Data, got[k].Data) {
						t.Errorf("%+v: output %q depends on the options", o, k)
					}
				}
				first = got
				if !slices.Contains(steps, operator) || rounding > 0 &&
					slices.Contains(steps, "DequantizeLinear") != l.also {
					t.Errorf("steps: %v", steps)
				}
			}
			if n := distinct(want); n < 30 {
				t.Errorf("the output has only %d distinct quantized values", n)
			}
		})
	}
}

// levelsApart is the largest difference of two arrays of 8-bit values, and the number of values that differ; other
// arrays must be equal.
func levelsApart(a, b *ir.Array) (most, values int) {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || a.DType == ir.Float && !bytes.Equal(a.Data, b.Data) {
		return math.MaxInt, len(a.Data)
	}
	for i, v := range a.Data {
		x, y := int(v), int(b.Data[i])
		if a.DType == ir.Int8 {
			x, y = int(int8(v)), int(int8(b.Data[i]))
		}
		if most = max(most, x-y, y-x); x != y {
			values++
		}
	}
	return most, values
}

// Images keep adjacent channels between convolutions and additions of quantized values, whose Cast is removed. The
// addition is exact.
func TestChainOfIntegerConvs(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	b := &builder{m.Graph}
	byteOf := func(dt ir.DType, v byte) *ir.Value {
		return b.AddConst("z", &ir.Tensor{Spec: ir.Spec{DType: dt}, Source: ir.Mem([]byte{v})})
	}
	r := rand.New(rand.NewPCG(1, 2))
	constants := func(dt ir.DType, shape ...int64) *ir.Value {
		data := make([]byte, (ir.Spec{DType: dt, Shape: shape}).Elems())
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		return b.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: ir.Mem(data)})
	}
	scales := func(n int64) *ir.Value {
		x := make([]float32, n)
		for i := range x {
			x[i] = 0.001 + 0.001*r.Float32()
		}
		return b.floats([]int64{n}, x...)
	}
	dequantized := func(x *ir.Value) *ir.Value {
		return b.op("DequantizeLinear", x, b.floats(nil, 0.05), byteOf(ir.Uint8, 100))
	}
	conv := func(x *ir.Value, w, ws, wz *ir.Value, act string, attrs ...*ir.Attr) *ir.Value {
		w = b.Insert(nil, "DequantizeLinear", []*ir.Value{w, ws, wz}, ir.IntAttr("axis", 0))
		y := b.Insert(nil, "Conv", []*ir.Value{dequantized(x), w}, attrs...)
		if act != "" {
			y = b.op(act, y)
		}
		y = b.op("QuantizeLinear", y, b.floats(nil, 0.05), byteOf(ir.Uint8, 100))
		return b.Insert(nil, "Cast", []*ir.Value{y}, ir.IntAttr("to", int64(ir.Uint8)))
	}
	same := ir.IntsAttr("pads", 1, 1, 1, 1)
	x := b.input("x", ir.Uint8, "n", "c", "h", "w")
	first := conv(x, constants(ir.Int8, 24, 5, 3, 3), scales(24),
		b.AddConst("z", &ir.Tensor{Spec: ir.Spec{DType: ir.Int8, Shape: []int64{24}},
			Source: ir.Mem(make([]byte, 24))}), "", same, ir.IntsAttr("strides", 2, 2))
	next := conv(first, constants(ir.Uint8, 24, 1, 3, 3), scales(24), constants(ir.Uint8, 24), "", same,
		ir.IntAttr("group", 24), ir.IntsAttr("dilations", 1, 1))
	next = conv(next, constants(ir.Uint8, 24, 12, 1, 1), scales(24), constants(ir.Uint8, 24), "",
		ir.IntAttr("group", 2))
	sum := b.op("Relu", b.op("Add", dequantized(first), dequantized(next)))
	b.output(b.op("QuantizeLinear", sum, b.floats(nil, 0.06), byteOf(ir.Int8, 0x85)))
	in := map[string]*ir.Array{"x": {DType: ir.Uint8, Shape: []int64{2, 5, 37, 41}, Data: make([]byte, 2*5*37*41)}}
	for i := range in["x"].Data {
		in["x"].Data[i] = byte(r.Uint32())
	}
	want, _ := runModel(t, m, in, engine.Options{NoFusion: true})
	got, steps := runModel(t, m, in, engine.Options{Workers: 2})
	conved := "mcompress.IntegerConv"
	if all := []string{"Transpose", conved, conved, conved, "mcompress.QuantizedAdd",
		"Transpose"}; !slices.Equal(steps, all) {
		t.Errorf("steps %v, want %v", steps, all)
	}
	for k, w := range want {
		if n, _ := levelsApart(w, got[k]); n > 2 {
			t.Errorf("output %q differs by %d levels", k, n)
		}
	}
	if n := distinct(want); n < 30 {
		t.Errorf("the output has only %d distinct quantized values", n)
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
	for _, act := range []string{"LeakyRelu", "Relu"} {
		l := quantizedConvs()["pointwise"]
		l.act = act
		testQDQConvMemory(t, l)
	}
}

func testQDQConvMemory(t *testing.T, l layer) {
	t.Helper()
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
		most := 96*size*size + 2<<20
		if l.act == "Relu" { // the output in both layouts, as there is no other convolution
			most += 96 * size * size
		}
		if u.Plan.Size > most {
			t.Errorf("%d bytes for images of %d×%d, want at most %d", u.Plan.Size, size, size, most)
		}
	}
}
