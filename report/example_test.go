package report_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// Two files of unknown history are compared weight by weight. A file compared with
// itself is not smaller, and a gate reports it.
func Example() {
	a, err := onnx.Open("../fixtures/mlp.onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	eval := ir.NewEval(os.TempDir())
	defer eval.Close()
	model := report.Model{Path: a.Path, IR: a.Model, Files: []report.File{{Name: "mlp.onnx", Bytes: a.Size()}}}
	r, err := report.Build(context.Background(), report.Input{
		Tool: "example", Source: model, Result: model,
		Gates: []report.Limit{{Name: "min-ratio", Bound: 2}},
		Eval:  eval, Workers: 2, Errors: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Totals.Parameters.After, "parameters,", r.Totals.Ratio, "times smaller, gates held:", r.Passed())
	// Output: 136842 parameters, 1 times smaller, gates held: false
}
