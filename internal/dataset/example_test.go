package dataset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/onnx"
)

// Data is opened for a model and converted to the model's inputs.
func Example() {
	m, err := onnx.Open("../../fixtures/cnn.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	in, out := dataset.Inputs(m.Model.Graph), dataset.Outputs(m.Model.Graph)
	s, err := dataset.Open("../../fixtures/digits_test.npz", in, out, dataset.Options{Limit: 5})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for b, err := range s.Batches(context.Background(), dataset.Order{Size: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.First, b.N, b.Inputs["input"], len(b.Classes()))
	}
	// Output:
	// 0 2 float[2,1,20,20] 2
	// 2 2 float[2,1,20,20] 2
	// 4 1 float[1,1,20,20] 1
}

// Without data, Generate makes random inputs from a seed.
func ExampleGenerate() {
	m, err := onnx.Open("../../fixtures/transformer.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	r := dataset.Random{Seed: 1, Batch: 2, Dims: map[string]int64{"sequence": 8},
		Ranges: map[string][2]int64{"input_ids": {0, 255}}}
	s, err := dataset.Generate(dataset.Inputs(m.Model.Graph), r)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for b, err := range s.Batches(context.Background(), dataset.Order{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Inputs["input_ids"])
	}
	// Output: int64[2,8]
}
