package ort_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/ir"
)

// Without a flag, the library is the one of MCOMPRESS_ORT_LIB, or an installed one.
func Example() {
	path, err := ort.Find("")
	if err != nil {
		log.Fatal(err)
	}
	lib, err := ort.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	s, err := ort.Open(lib, "../../../fixtures/mlp.onnx", ort.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	image := ir.NewArray(ir.Float, 1, 1, 20, 20)
	out, err := s.Run(context.Background(), map[string]*ir.Array{"input": image}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out["logits"])
}
