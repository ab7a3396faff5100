package mcompress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/sparse"
)

// folder is a temporary folder for the outputs of an example.
func folder() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "mcompress-example-*")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

func ExampleCompress() {
	dir, remove := folder()
	defer remove()
	res, err := mcompress.Compress(context.Background(), "fixtures/mlp.onnx", filepath.Join(dir, "mlp.int8.onnx"),
		quantize.DynamicInt8{ReduceRange: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.1fx smaller\n", float64(res.Report.Totals.FileBytes.Before)/float64(res.Report.Totals.FileBytes.After))
	// Output: 3.9x smaller
}

func ExampleCompress_steps() {
	dir, remove := folder()
	defer remove()
	res, err := mcompress.Compress(context.Background(), "fixtures/mlp.onnx", filepath.Join(dir, "mlp.sparse.onnx"),
		prune.L1{Amount: 0.9}, quantize.DynamicInt8{}, sparse.COO{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Report.Totals.FileBytes.After < res.Report.Totals.FileBytes.Before)
	// Output: true
}

func ExampleCompress_gates() {
	dir, remove := folder()
	defer remove()
	_, err := mcompress.Request{
		Models: []string{"fixtures/cnn.onnx"},
		Output: filepath.Join(dir, "cnn.onnx"),
		Steps:  []mcompress.Step{prune.Random{}},
		Data:   mcompress.Data{Path: "fixtures/digits_test.npz"},
		Gates:  []mcompress.Gate{mcompress.MaxAccuracyDrop(0.01)},
	}.Run(context.Background())
	var rejected *mcompress.RejectedError
	if errors.As(err, &rejected) {
		fmt.Println(filepath.Base(rejected.Result.Output))
	}
	// Output: cnn.rejected.onnx
}

func ExampleOpenFS() {
	m, err := mcompress.OpenFS(os.DirFS("fixtures"), "external.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(len(m.IR().Graph.Consts()), "constants")
	// Output: 3 constants
}

// memory keeps files in memory.
type memory map[string]*bytes.Buffer

func (m memory) Create(name string) (io.WriteCloser, error) {
	m[name] = &bytes.Buffer{}
	return file{m[name]}, nil
}

type file struct{ *bytes.Buffer }

func (file) Close() error { return nil }

func ExampleModel_RunTo() {
	content, err := os.ReadFile("fixtures/mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	m, err := mcompress.Read(bytes.NewReader(content), int64(len(content)), "mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	files := memory{}
	if _, err := m.RunTo(context.Background(), files, "mlp.onnx",
		mcompress.Request{Steps: []mcompress.Step{prune.Random{}},
			Reports: mcompress.Reports{Formats: []string{"md"}}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(files["mlp.onnx"].Len() > 0, files["mlp.report.md"].Len() > 0)
	// Output: true true
}

func ExampleInspect() {
	facts, err := mcompress.Inspect(context.Background(), "fixtures/mlp.onnx", mcompress.InspectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range facts.Operators {
		fmt.Println(o.Op, o.Nodes)
	}
	// Output:
	// Gemm 3
	// Relu 2
	// Flatten 1
}

func ExampleVerify() {
	v, err := mcompress.Verify(context.Background(), "fixtures/cnn.onnx", "fixtures/cnn.onnx",
		mcompress.WithData("fixtures/digits_test.npz"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Accuracy.After == *v.Accuracy.Before, *v.Worst().Agreement)
	// Output: true 1
}

func ExampleNewSession() {
	ctx := context.Background()
	s, err := mcompress.NewSession(ctx, "fixtures/mlp.onnx", mcompress.SessionOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	in, out := s.Inputs()[0], s.Outputs()[0]
	images := ir.NewArray(ir.Float, 2, 1, 20, 20)
	results, err := s.Run(ctx, map[string]*ir.Array{in.Name: images})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results[out.Name].Shape)
	// Output: [2 10]
}

func ExamplePlanMemory() {
	plan, err := mcompress.PlanMemory(context.Background(), "fixtures/cnn.onnx",
		mcompress.MemoryOptions{Batches: []int64{1, 8}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(plan.Runs), "runs,", plan.Weights.Tensors, "weights")
	// Output: 2 runs, 10 weights
}

func ExampleRequest_FineTune() {
	dir, remove := folder()
	defer remove()
	res, err := mcompress.Request{
		Models: []string{"fixtures/cnn.onnx"}, Output: filepath.Join(dir, "cnn.onnx"),
		Steps: []mcompress.Step{prune.Random{Amount: 0.3}},
		Data:  mcompress.Data{Path: "fixtures/digits_test.npz", Limit: 256},
	}.FineTune(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Report.Training[0].Method)
	// Output: finetune
}

func ExampleRequest_Distill() {
	dir, remove := folder()
	defer remove()
	res, err := mcompress.Request{
		Models: []string{"fixtures/cnn.onnx"}, Output: filepath.Join(dir, "student.onnx"),
		Data: mcompress.Data{Path: "fixtures/digits_test.npz", Limit: 64},
	}.Distill(context.Background(), "fixtures/cnn.onnx")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Report.Training[0].Method)
	// Output: distill
}

func ExampleMethods() {
	var names []string
	for _, m := range mcompress.Methods() {
		if m.Command == "prune" {
			names = append(names, m.Name)
		}
	}
	fmt.Println(strings.Join(names, " "))
	// Output: l1 l1-global l1-block l2 random nm wanda sparsegpt channel heads ffn lowrank layers iterative movement
}
