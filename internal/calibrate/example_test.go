package calibrate_test

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/calibrate"
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
	var d calibrate.Data
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	d.Bind(fs, 2)
	if err := fs.Parse([]string{"--data", "../../fixtures/digits_test.npz"}); err != nil {
		log.Fatal(err)
	}
	c := &pass.Context{Context: context.Background(), Model: f.Model, Workers: 2}
	err = d.Each(c, c.Model, []string{"input"}, func(name string, a *ir.Array) error {
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
