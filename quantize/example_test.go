package quantize_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// A weight becomes quantized values and scales, which are computed on demand; its product becomes MatMulInteger.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	var payload []byte
	for i := range 64 * 32 {
		payload = binary.LittleEndian.AppendUint32(payload, math.Float32bits(float32(i%32)/31))
	}
	w := m.Graph.AddConst("w", &ir.Tensor{
		Spec:   ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{64, 32}},
		Source: ir.Mem(payload),
	})
	x := m.Graph.NewValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	m.Graph.AddOutput(m.Graph.Insert(nil, "MatMul", []*ir.Value{x, w}))

	eval := ir.NewEval("")
	defer eval.Close()
	step, err := pass.NewStep(quantize.DynamicInt8{}.Method(), func(fs *flag.FlagSet) error {
		return fs.Set("per-tensor", "true")
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := pass.Run(context.Background(), m, eval, pass.Environment{Workers: 2}, []pass.Options{step})
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range m.Nodes() {
		fmt.Println(n.Op)
	}
	for _, p := range res.Rows[0].After {
		b, err := eval.ReadAll(context.Background(), p.Tensor)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(p.Role, p.Tensor.Spec.String(), b[:4])
	}
	// Output:
	// DynamicQuantizeLinear
	// MatMulInteger
	// Cast
	// Mul
	// Mul
	// payload int8[64,32] [0 4 8 12]
	// scales float [4 2 1 60]
}

// Options of a method are fields of its struct; those about calibration samples and the selection of weights are
// groups. Options for which 0 is a value of its own are pointers.
func ExampleStaticInt8() {
	o := quantize.StaticInt8{
		Calibration:    quantize.Calibration{Samples: pass.Samples{Path: "samples.npz"}, CalibrationSamples: new(64)},
		ActivationSQNR: new(25.0),
	}
	for _, v := range pass.Values(o) {
		if v.Name == "activation-sqnr" || v.Name == "calibrate" || v.Name == "data" {
			fmt.Println(v.Name, v.Value)
		}
	}
	// Output:
	// activation-sqnr 25
	// calibrate 64
	// data samples.npz
}

// The options of GPTQ, and weights that stay as they are.
func ExampleWeightInt4() {
	o := quantize.WeightInt4{Block: 64, Algo: "gptq", Damp: new(0.0),
		Selection: pass.Selection{Skip: []string{"lm_head", "op:Gather"}}}
	for _, v := range pass.Values(o) {
		if v.Name == "algo" || v.Name == "block" || v.Name == "damp" || v.Name == "skip" {
			fmt.Println(v.Name, v.Value)
		}
	}
	// Output:
	// algo gptq
	// block 64
	// damp 0
	// skip lm_head,op:Gather
}
