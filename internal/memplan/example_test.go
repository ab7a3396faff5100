package memplan_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/memplan"
	"github.com/mcompress/mcompress/onnx"
)

// How many pictures fit into a MiB, weights included?
func Example() {
	f, err := onnx.Open("../../fixtures/cnn.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	facts, err := memplan.Model(context.Background(), f, memplan.Options{Budget: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	b := facts.Budget
	fmt.Println("a batch of", facts.Runs[0].Batch, "has inputs of", facts.Runs[0].Inputs[0].Bytes, "bytes")
	fmt.Println("some fit:", b.Batch > 1, "one more does not:", b.Next > b.Bytes)
	// Output:
	// a batch of 1 has inputs of 1600 bytes
	// some fit: true one more does not: true
}
