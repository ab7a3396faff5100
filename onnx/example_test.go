package onnx_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Open reads a model's skeleton, Save writes it; payloads go from file to file.
func Example() {
	f, err := onnx.Open("../fixtures/mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, v := range f.Model.Graph.Consts() {
		fmt.Println(v.Name, v.Const.Spec, v.Const.Bytes())
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	e := ir.NewEval(dir)
	defer e.Close()
	o := onnx.SaveOptions{Workers: 2, Memory: 64 << 20, External: true, Eval: e}
	files, err := onnx.Save(context.Background(), f.Model, filepath.Join(dir, "mlp.onnx"), o)
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range files {
		fmt.Println(w.Name, w.Size)
	}
	// Output:
	// 1.weight float[256,400] 409600
	// 1.bias float[256] 1024
	// 3.weight float[128,256] 131072
	// 3.bias float[128] 512
	// 5.weight float[10,128] 5120
	// 5.bias float[10] 40
	// mlp.onnx 1283
	// mlp.onnx.data 546816
}

// Sizes are known before a payload is read.
func ExampleLayout() {
	f, err := onnx.Open("../fixtures/mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println(onnx.Layout(f.Model, "mlp.onnx", onnx.LayoutOptions{}).Size())
	// Output: 547869
}
