package ir_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A pass walks the nodes and rewrites the operators that it supports.
func Example() {
	f, err := onnx.Open("../fixtures/mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	g := f.Model.Graph
	for n := range g.Nodes() {
		if n.Op.Is("Relu") {
			relu6 := g.Insert(n, "Clip", []*ir.Value{n.Input(0), zero(g), six(g)})
			n.Outputs[0].ReplaceUses(relu6)
			n.Remove()
		}
	}
	if err := f.Model.Verify(); err != nil {
		log.Fatal(err)
	}
	for n := range g.Nodes() {
		fmt.Println(n.Op, len(n.Inputs()))
	}
	// Output:
	// Flatten 1
	// Gemm 3
	// Clip 3
	// Gemm 3
	// Clip 3
	// Gemm 3
}

func zero(g *ir.Graph) *ir.Value { return scalar(g, 0, 0, 0, 0) }
func six(g *ir.Graph) *ir.Value  { return scalar(g, 0, 0, 0xc0, 0x40) }

func scalar(g *ir.Graph, b ...byte) *ir.Value {
	return g.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Mem(b)})
}

// A recipe describes how a tensor is computed; nothing runs until it is opened or saved.
func ExampleRecipe() {
	in := &ir.Tensor{Spec: ir.Spec{DType: ir.Int8, Shape: []int64{3}}, Source: ir.Mem{1, 2, 3}}
	negate := &ir.Recipe{
		Name: "negate",
		In:   []*ir.Tensor{in},
		Out:  []ir.Spec{in.Spec},
		Run: func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
			var b [3]byte
			if err := ir.ReadFull(in[0], b[:], 0); err != nil {
				return err
			}
			for i := range b {
				b[i] = -b[i]
			}
			_, err := out[0].Write(b[:])
			return err
		},
	}
	e := ir.NewEval("")
	defer e.Close()
	b, err := e.ReadAll(context.Background(), negate.Derive()[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(int8(b[0]), int8(b[1]), int8(b[2]))
	// Output: -1 -2 -3
}

func ExampleModel_Text() {
	f, err := onnx.Open("../fixtures/mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	e := ir.NewEval("")
	defer e.Close()
	if err := f.Model.Text(context.Background(), e, os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// <
	//    ir_version: 8,
	//    opset_import: ["" : 17]
	// >
	// mlp (float[batch,1,20,20] input) => (float[batch,10] logits)
	// <
	//    float[256,400] "1.weight" = ["elided" : "409600 bytes"],
	//    float[256] "1.bias" = ["elided" : "1024 bytes"],
	//    float[128,256] "3.weight" = ["elided" : "131072 bytes"],
	//    float[128] "3.bias" = ["elided" : "512 bytes"],
	//    float[10,128] "5.weight" = ["elided" : "5120 bytes"],
	//    float[10] "5.bias" = ["elided" : "40 bytes"]
	// >
	// {
	//    [Flatten_h0] h0 = Flatten (input)
	//    [Gemm_h1] h1 = Gemm <transB = 1> (h0, "1.weight", "1.bias")
	//    [Relu_h2] h2 = Relu (h1)
	//    [Gemm_h3] h3 = Gemm <transB = 1> (h2, "3.weight", "3.bias")
	//    [Relu_h4] h4 = Relu (h3)
	//    [Gemm_logits] logits = Gemm <transB = 1> (h4, "5.weight", "5.bias")
	// }
}
