package distill_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// Fine-tune a model for 4 steps on labels.
func ExampleFineTune() {
	res := runSteps("../fixtures/mlp.onnx", distill.FineTune{
		Samples: pass.Samples{Path: "../fixtures/digits_test.npz"}, Steps: 4, Validate: new(0.2), Seed: new(uint64(7)),
	})
	fmt.Println(res.Trainings[0].Steps, "steps on", res.Trainings[0].Samples, "samples")
	// Output: 4 steps on 128 samples
}

// Train a student on the outputs of the teacher fixtures/cnn.onnx.
func ExampleDistill() {
	res := runSteps("../fixtures/mlp.onnx", distill.Distill{
		Samples: pass.Samples{Path: "../fixtures/digits_test.npz"}, Teacher: []string{"../fixtures/cnn.onnx"}, Steps: 4,
		Temperature: 2,
	})
	fmt.Println(res.Trainings[0].Method)
	// Output: distill
}

// runSteps runs a pipeline on a model file.
func runSteps(path string, steps ...pass.Options) *pass.Result {
	e := ir.NewEval(os.TempDir())
	defer e.Close()
	env := pass.Environment{Workers: 1, Open: func(path string) (*ir.Model, error) { return open(path), nil }}
	res, err := pass.Run(context.Background(), open(path), e, env, steps)
	if err != nil {
		panic(err)
	}
	return res
}

func open(path string) *ir.Model {
	f, err := onnx.Open(path)
	if err != nil {
		panic(err)
	}
	return f.Model
}
