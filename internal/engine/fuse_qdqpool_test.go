package engine_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// quantizedModel has one operator between DequantizeLinear and QuantizeLinear.
func quantizedModel(dt ir.DType, rank int, to float32, insert func(b *builder, x *ir.Value) *ir.Value) *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	b := &builder{m.Graph}
	zero := b.AddConst("z", &ir.Tensor{Spec: ir.Spec{DType: dt}, Source: ir.Mem([]byte{100})})
	x := b.input("x", dt, []string{"n", "c", "h", "w"}[:rank]...)
	y := insert(b, b.op("DequantizeLinear", x, b.floats(nil, 0.03), zero))
	b.output(b.op("QuantizeLinear", y, b.floats(nil, to), zero))
	return m
}

func quantizedInput(dt ir.DType, shape ...int64) map[string]*ir.Array {
	x := ir.NewArray(dt, shape...)
	for i := range x.Data {
		x.Data[i] = byte(i*i>>3 + 7*i)
	}
	return map[string]*ir.Array{"x": x}
}

// The maximum of quantized values is bit-identical to that of dequantized ones; with another scale it is not fused.
func TestQDQMaxPool(t *testing.T) {
	ints := func(name string, v ...int64) *ir.Attr { return ir.IntsAttr(name, v...) }
	for _, dt := range []ir.DType{ir.Int8, ir.Uint8} {
		for i, attrs := range [][]*ir.Attr{
			{ints("kernel_shape", 3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 1, 1)},
			{ints("kernel_shape", 2, 3), ints("dilations", 2, 1), ints("pads", 0, 2, 1, 0)},
			{ints("kernel_shape", 3, 2), ints("strides", 2, 1),
				{Name: "auto_pad", Type: ir.AttrString, S: "SAME_LOWER"}},
		} {
			t.Run(fmt.Sprint(dt, i), func(t *testing.T) {
				model := func(to float32) *ir.Model {
					return quantizedModel(dt, 4, to,
						func(b *builder, x *ir.Value) *ir.Value {
							return b.Insert(nil, "MaxPool", []*ir.Value{x},
								attrs...)
						})
				}
				in := quantizedInput(dt, 2, 35, 19, 22)
				for _, to := range []float32{0.03, 0.04} {
					want, _ := runModel(t, model(to), in, engine.Options{NoFusion: true})
					for workers := 1; workers <= 3; workers += 2 {
						got, steps := runModel(t, model(to), in, engine.Options{Workers: workers})
						if slices.Contains(steps, "mcompress.QuantizedMaxPool") != (to == 0.03) {
							t.Errorf("steps: %v", steps)
						}
						for k, w := range want {
							if !bytes.Equal(w.Data, got[k].Data) {
								t.Errorf("%d workers, scale %v: output %q differs", workers, to, k)
							}
						}
					}
				}
			})
		}
	}
}

// Gemm with quantized weights sums integers: results are within one quantization level.
func TestQDQGemm(t *testing.T) {
	const k, n = 70, 130
	for _, dt := range []ir.DType{ir.Int8, ir.Uint8} {
		for _, fits := range []bool{true, false} { // whether the weights minus their zero points are int8
			t.Run(fmt.Sprint(dt, fits), func(t *testing.T) {
				model := func() *ir.Model {
					return quantizedModel(dt, 2, 0.2, func(b *builder, x *ir.Value) *ir.Value {
						weights, bias := make([]byte, k*n), make([]float32, n)
						for i := range weights {
							weights[i] = byte(i * i >> 3)
						}
						for i := range bias {
							bias[i] = float32(i%5) - 2
						}
						add := func(name string, data []byte, dt ir.DType, shape ...int64) *ir.Value {
							return b.AddConst(name,
								&ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: ir.Mem(data)})
						}
						wType, zero := ir.Int8, byte(0)
						if !fits {
							wType, zero = ir.Uint8, 90
						}
						w := b.op("DequantizeLinear", add("w", weights, wType, n, k), b.floats(nil, 0.004),
							add("wz", []byte{zero}, wType))
						return b.Insert(nil, "Gemm", []*ir.Value{x, w, b.floats([]int64{n}, bias...)},
							ir.IntAttr("transB", 1))
					})
				}
				for _, rows := range []int64{1, 9} {
					in := quantizedInput(dt, rows, k)
					want, _ := runModel(t, model(), in, engine.Options{NoFusion: true})
					got, steps := runModel(t, model(), in, engine.Options{Workers: 2})
					if !slices.Contains(steps, "mcompress.IntegerConv") {
						t.Errorf("steps: %v", steps)
					}
					for o, w := range want {
						if levels, values := levelsApart(w, got[o]); levels > 1 || values > 1+len(w.Data)/1000 {
							t.Errorf("%d rows: %d values of output %q differ, by up to %d levels", rows, values, o,
								levels)
						}
					}
					if distinct(want) < 30 {
						t.Errorf("%d rows: the output has only %d distinct quantized values", rows, distinct(want))
					}
				}
			})
		}
	}
}

// The average of quantized values is the exact one, as in QLinearGlobalAveragePool: where both scales are equal,
// averages of 64 pixels are often halfway between two levels.
func TestQDQGlobalAveragePool(t *testing.T) {
	for _, dt := range []ir.DType{ir.Int8, ir.Uint8} {
		for _, to := range []float32{0.03, 0.041} {
			model := quantizedModel(dt, 4, to, func(b *builder,
				x *ir.Value) *ir.Value {
				return b.op("GlobalAveragePool", x)
			})
			in := quantizedInput(dt, 2, 135, 8, 8)
			for x := in["x"].Data; len(x) > 0; x = x[3*64:] { // every third channel has a sum of 32 modulo 64
				sum := byte(0)
				for _, v := range x[:64] {
					sum += v
				}
				x[0] += 32 - sum
			}
			got, steps := runModel(t, model, in, engine.Options{Workers: 2})
			if !slices.Contains(steps, "com.microsoft.QLinearGlobalAveragePool") {
				t.Errorf("steps: %v", steps)
			}
			values, ties := in["x"].Data, 0
			for _, y := range got {
				for i, b := range y.Data {
					sum := -64 * 100
					for _, v := range values[64*i:][:64] {
						if dt == ir.Int8 {
							sum += int(int8(v))
						} else {
							sum += int(v)
						}
					}
					average := float64(sum) * float64(float32(0.03)) / 64 / float64(to)
					if math.Abs(average-math.Floor(average)-0.5) < 1e-9 {
						ties++
					}
					want := max(0, min(255, math.RoundToEven(average)+100))
					if dt == ir.Int8 {
						want = max(-128, min(127, math.RoundToEven(average)+100))
					}
					if b != byte(int(want)) {
						t.Errorf("%v, scale %v: channel %d is %d, want %v", dt, to, i, b, want)
					}
				}
			}
			if to == 0.03 && ties == 0 {
				t.Error("no average is halfway between two levels")
			}
		}
	}
}
