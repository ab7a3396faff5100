package mcompress_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/mcompress/mcompress"
)

func ExampleBenchmark_Measure() {
	measured, err := mcompress.Benchmark{
		Models:  []string{"fixtures/mlp.onnx"},
		Backend: mcompress.BackendEmbedded,
		Batches: []int64{1, 8},
		Runs:    3,
	}.Measure(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range measured {
		fmt.Println(m.Batch, m.Runs, m.Min <= m.Median)
	}
	// Output:
	// 1 3 true
	// 8 3 true
}

// A run beyond the budget is an error with exit code 3, or is halved until it fits.
func TestBenchmarkBudget(t *testing.T) {
	b := mcompress.Benchmark{
		Models: []string{"fixtures/mlp.onnx"}, Backend: mcompress.BackendEmbedded, Batches: []int64{1 << 14}, Budget: 4 << 20,
	}
	_, err := b.Measure(t.Context())
	var over *mcompress.BudgetError
	if !errors.As(err, &over) || over.Needs <= b.Budget || mcompress.ExitCode(err) != mcompress.ExitGate {
		t.Fatalf("%v", err)
	}
	b.Budget = over.Needs / 2
	b.Halve = true
	measured, err := b.Measure(t.Context())
	if err != nil || len(measured) != 1 || len(measured[0].Halved) == 0 || measured[0].Batch >= 1<<14 {
		t.Errorf("%+v, %v", measured, err)
	}
}

func TestBenchmarkFields(t *testing.T) {
	for want, b := range map[string]mcompress.Benchmark{
		"Models":  {},
		"Backend": {Models: []string{"m.onnx"}, Backend: "tpu"},
		"Library": {Models: []string{"m.onnx"}, Backend: mcompress.BackendEmbedded, Library: "lib.so"},
		"Halve":   {Models: []string{"m.onnx"}, Halve: true},
		"Batches": {Models: []string{"m.onnx"}, Batches: []int64{0}},
		"Decode":  {Models: []string{"m.onnx"}, Decode: 4, Budget: 1},
	} {
		_, err := b.Measure(t.Context())
		var field *mcompress.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
