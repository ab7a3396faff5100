package calibrate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// Observes the values of a graph sample by sample.
func Example() {
	f, err := onnx.Open("../../fixtures/cnn.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	d := calibrate.Data{Source: dataset.Source{Samples: pass.Samples{Path: "../../fixtures/digits_test.npz"}},
		MaxSamples: 2}
	s := &pass.Step{Model: f.Model, Env: pass.Environment{Workers: 2}}
	err = d.Each(context.Background(), s, s.Model, []string{"input"}, func(name string, a *ir.Array) error {
		fmt.Println(name, a)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// input float[1,1,20,20]
	// input float[1,1,20,20]
}
