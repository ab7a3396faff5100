package partition_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/onnx"
)

// A digit classifier on two devices.
func Example() {
	f, err := onnx.Open("../../fixtures/mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	p, err := partition.New(context.Background(), f.Model, partition.Options{Stages: 2, By: "weights"})
	if err != nil {
		log.Fatal(err)
	}
	for i, s := range p.Stages {
		fmt.Println("stage", i+1, "has", s.Nodes, "nodes and sends", s.Handed, "bytes")
	}
	// Output:
	// stage 1 has 2 nodes and sends 1024 bytes
	// stage 2 has 4 nodes and sends 0 bytes
}
