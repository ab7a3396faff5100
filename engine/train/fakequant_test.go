package train_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/engine/elementwise/optest"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/engine/quant"
	"github.com/mcompress/mcompress/engine/train"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// wave is numbers of both signs and many sizes, with zeros.
func wave(shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Float, shape...)
	for i := range ir.View[float32](a) {
		if i%11 != 0 {
			ir.View[float32](a)[i] = float32(math.Sin(float64(i)) * math.Exp(math.Cos(float64(i*i))))
		}
	}
	return a
}

func run(t *testing.T, ops []op.Op, c optest.Case) []*ir.Array {
	t.Helper()
	c.Workers = 2
	out, err := optest.Run(ops, c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a trained weight is rounded to is what the quantized model will hold.
func TestWeightsAreRoundedAsMethodsQuantizeThem(t *testing.T) {
	for i, c := range []struct {
		method    *pass.Method
		op        string
		shape     []int64
		attrs     []*ir.Attr
		perTensor bool
	}{
		{quantize.DynamicInt8, "MatMul", []int64{40, 30}, []*ir.Attr{optest.Int("axis", 1)}, false},
		{quantize.DynamicInt8, "MatMul", []int64{40, 1500}, []*ir.Attr{optest.Int("axis", -1)}, false},
		{quantize.DynamicInt8, "MatMul", []int64{40, 30}, nil, true},
		{quantize.DynamicInt8, "MatMul", []int64{4, 25, 30}, []*ir.Attr{optest.Int("axis", -1), optest.Int("batch_dims", 1)}, false},
		{quantize.WeightInt8, "MatMul", []int64{40, 30}, []*ir.Attr{optest.Int("axis", 1)}, false},
		{quantize.WeightInt8, "Conv", []int64{20, 30, 5, 5}, []*ir.Attr{optest.Int("axis", 0)}, false},
	} {
		w := wave(c.shape...)
		clear(ir.View[float32](w)[:25*30]) // whole channels of zeros
		want := restored(t, c.method, c.op, w, c.perTensor)
		got := run(t, train.Ops(), optest.Case{Domain: "mcompress", Type: "FakeQuantWeight", Version: 1, In: []*ir.Array{w}, Attrs: c.attrs})[0]
		if !slices.Equal(ir.View[float32](got), want) {
			t.Errorf("case %d: the numbers are not those of %s", i, c.method.Name)
		}
	}
}

// restored are the numbers that w's codes stand for after the method.
func restored(t *testing.T, method *pass.Method, typ string, w *ir.Array, perTensor bool) []float32 {
	t.Helper()
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	x, weight := m.Graph.NewValue("x"), m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{Name: "w", DType: ir.Float, Shape: w.Shape}, Source: ir.Mem(w.Data)})
	x.Type = &ir.Type{Elem: ir.Float, Shape: slices.Repeat([]ir.Dim{{N: -1}}, len(w.Shape))}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	m.Graph.AddOutput(m.Graph.Insert(nil, typ, []*ir.Value{x, weight}))
	step, err := pass.NewStep(method, func(fs *flag.FlagSet) error { return fs.Set("per-tensor", fmt.Sprint(perTensor)) })
	if err != nil {
		t.Fatal(err)
	}
	eval := ir.NewEval("")
	defer eval.Close()
	rows, err := pass.Run(&pass.Context{Context: t.Context(), Model: m, Eval: eval, Workers: 1}, []pass.Step{step})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Restore == nil {
		t.Fatalf("%s leaves the weight alone: %s", method.Name, rows[0].Reason)
	}
	var parts []*ir.Tensor
	for _, p := range rows[0].After {
		parts = append(parts, p.Tensor)
	}
	b, err := eval.ReadAll(t.Context(), rows[0].Restore(parts))
	if err != nil {
		t.Fatal(err)
	}
	return ir.View[float32](&ir.Array{DType: ir.Float, Shape: w.Shape, Data: append(ir.AlignedBytes(0), b...)})
}

// What FakeQuantDynamic gives is DynamicQuantizeLinear and DequantizeLinear.
func TestDynamicIsQuantizeAndDequantize(t *testing.T) {
	constant := ir.NewArray(ir.Float, 4)
	for i, x := range []*ir.Array{wave(3, 7), wave(20000), wave(100, 400), constant, optest.Array[float32](1, 2, 3), optest.Array[float32](-5, -0.01), ir.NewArray(ir.Float, 0, 2)} {
		codes := run(t, quant.Ops(), optest.Case{Type: "DynamicQuantizeLinear", Version: 11, In: []*ir.Array{x}, Outputs: 3})
		want := run(t, quant.Ops(), optest.Case{Type: "DequantizeLinear", Version: 13, In: codes})[0]
		got := run(t, train.Ops(), optest.Case{Domain: "mcompress", Type: "FakeQuantDynamic", Version: 1, In: []*ir.Array{x}})[0]
		if !slices.Equal(ir.View[float32](got), ir.View[float32](want)) {
			t.Errorf("case %d: the numbers are not those of the operators", i)
		}
	}
}

// Fewer bits are fewer numbers, each the nearest one.
func TestBitsOfWeights(t *testing.T) {
	w := wave(6, 50)
	for _, bits := range []int{2, 4, 8} {
		y := ir.View[float32](run(t, train.Ops(), optest.Case{Domain: "mcompress", Type: "FakeQuantWeight", Version: 1, In: []*ir.Array{w}, Attrs: []*ir.Attr{optest.Int("axis", 0), optest.Int("bits", int64(bits))}})[0])
		for row := range 6 {
			x, y := ir.View[float32](w)[row*50:][:50], y[row*50:][:50]
			top := 0.0
			for _, v := range x {
				top = max(top, math.Abs(float64(v)))
			}
			scale := top / (math.Pow(2, float64(bits-1)) - 1)
			for i := range x {
				if want := scale * math.RoundToEven(float64(x[i])/scale); math.Abs(float64(y[i])-want) > 1e-5*top {
					t.Fatalf("%d bits: %v becomes %v, want %v", bits, x[i], y[i], want)
				}
			}
		}
	}
}

func TestFakeQuantSaysWhatDoesNotFit(t *testing.T) {
	w := wave(2, 3)
	bad := optest.Array(float32(math.NaN()), 1)
	for _, c := range []struct {
		want  string
		in    *ir.Array
		attrs []*ir.Attr
	}{
		{"attribute bits is 9", w, []*ir.Attr{optest.Int("bits", 9)}},
		{"batch_dims is 3", w, []*ir.Attr{optest.Int("batch_dims", 3)}},
		{"among the first 1 of the batch", w, []*ir.Attr{optest.Int("batch_dims", 1), optest.Int("axis", 0)}},
		{"axis 2 is outside", w, []*ir.Attr{optest.Int("axis", 2)}},
		{"not finite", bad, nil},
		{"want float", ir.NewArray(ir.Double, 2), nil},
	} {
		_, err := optest.Run(train.Ops(), optest.Case{Domain: "mcompress", Type: "FakeQuantWeight", Version: 1, In: []*ir.Array{c.in}, Attrs: c.attrs})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
