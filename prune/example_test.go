package prune_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/report"
)

// A method rewrites the model's weights as recipes; Eval, or the writer, computes them.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	var payload []byte
	for _, x := range []float32{0.1, -0.9, 0.8, 0.2, -0.3, 0.7} {
		payload = binary.LittleEndian.AppendUint32(payload, math.Float32bits(x))
	}
	w := m.Graph.AddConst("w", &ir.Tensor{
		Spec:   ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{3, 2}},
		Source: ir.Mem(payload),
	})
	x := m.Graph.NewValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	m.Graph.Insert(nil, "MatMul", []*ir.Value{x, w})

	eval := ir.NewEval("")
	defer eval.Close()
	res, err := pass.Run(context.Background(), m, eval, pass.Environment{Workers: 2},
		[]pass.Options{prune.L1{Amount: 0.5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Rows[0].Tensor, res.Rows[0].Status, report.Why(res.Rows[0]))

	pruned, err := eval.ReadAll(context.Background(), w.Const)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < len(pruned); i += 4 {
		fmt.Print(math.Float32frombits(binary.LittleEndian.Uint32(pruned[i:])), " ")
	}
	// Output:
	// w changed pruned: 3 of 6 elements, the largest 0.3
	// 0 -0.9 0.8 0 0 0.7
}

// With None, only the weights of Amounts are pruned.
func ExampleAmount() {
	o := prune.L1{Amount: prune.None, Amounts: prune.Amounts{{Pattern: "head.*", Amount: 0.5}}}
	for _, v := range pass.Values(o) {
		if v.Name == "amount" || v.Name == "amounts" {
			fmt.Println(v.Name, v.Value)
		}
	}
	// Output:
	// amount 0
	// amounts head.*=0.5
}

// Amounts are fractions for some of the weights.
func ExampleL1() {
	o := prune.L1{Amount: 0.6, Amounts: prune.Amounts{{Pattern: "op:Conv", Amount: 0.3}, {Pattern: "head.*", Amount: 0}}}
	for _, v := range pass.Values(o) {
		if v.Name == "amount" || v.Name == "amounts" {
			fmt.Println(v.Name, v.Value)
		}
	}
	// Output:
	// amount 0.6
	// amounts op:Conv=0.3,head.*=0
}
