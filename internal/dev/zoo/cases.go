package main

import (
	"slices"
	"strconv"

	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/sparse"
)

// A command is a command line. Of its arguments MODEL is the model, OUT the result, PARTS a folder, DATA random samples
// of the model with ONNX Runtime's outputs, and RECIPE a recipe.
type command struct {
	name string
	args []string
	// needs is what a model must have for the command.
	needs   need
	written check
}

// A check is what is done with a result.
type check int

const (
	unchecked check = iota
	// ONNX Runtime loads and runs it; its outputs are not compared, as sums of int8 weights saturate in it on x86
	// without VNNI
	loaded
	compared // its outputs in ONNX Runtime have the errors that its report states
	recorded // verify's comparison of the embedded engine with ONNX Runtime
)

// A need is a part of the samples.
type need int

const (
	nothing need = iota
	samples      // random samples
	outputs      // the outputs of ONNX Runtime for them
)

// recipe has a step of each kind.
const recipe = `steps:
  - method: l1
    amount: 0.3
  - method: weight-int8
  - method: auto
`

// options are those that a method requires, by its name.
var options = map[string][]string{
	"float4":       {"--target", "embedded"},
	"smooth":       {"--data", "DATA"},
	"dynamic-int8": {"--target", "any"}, // no saturation
	"static-int8":  {"--target", "any"},
}

// allCases are the cases, fast ones first, every method among them.
func allCases() []command {
	list := []command{
		{name: "inspect", args: []string{"inspect", "--values", "MODEL"}},
		{name: "memory", args: []string{"memory", "MODEL"}},
		{name: "verify", args: []string{"verify", "MODEL", "--data", "DATA", "--json", "--no-layers"}, needs: outputs,
			written: recorded},
		{name: "bench", args: []string{"bench", "--runs", "1", "--warmup", "0", "--time", "0s", "MODEL"}},
	}
	write := func(name string, args ...string) {
		c := command{name: name, args: append(args, "MODEL", "-o", "OUT", "--report", "json"), written: compared}
		if slices.Contains(args, "DATA") {
			c.needs = samples
		} else if !slices.Contains(args, "--format") {
			c.args = append(c.args, "--samples", strconv.Itoa(samplesOfModel))
		}
		list = append(list, c)
	}
	write("quantize", "quantize")
	list[len(list)-1].written = loaded
	for _, m := range quantize.Methods() {
		write(m.Name, append([]string{"quantize", "--method", m.Name}, options[m.Name]...)...)
	}
	write("weight-int8 --target ort", "quantize", "--method", "weight-int8", "--target", "ort")
	write("weight-int4 --target ort", "quantize", "--method", "weight-int4", "--target", "ort")
	write("weight-int4 --algo gptq", "quantize", "--method", "weight-int4", "--algo", "gptq", "--data", "DATA")
	write("weight-int4 --algo awq", "quantize", "--method", "weight-int4", "--algo", "awq", "--data", "DATA")
	write("static-int8 --data", "quantize", "--method", "static-int8", "--data", "DATA", "--target", "any")
	write("float16 --compute float16", "quantize", "--method", "float16", "--compute", "float16")
	for _, m := range prune.Methods() {
		write(m.Name, "prune", "--method", m.Name)
	}
	for _, m := range sparse.Methods() {
		write(m.Name, "sparse", "--format", m.Name)
	}
	write("apply", "apply", "RECIPE")
	list = append(list,
		command{name: "split", args: []string{"split", "MODEL", "-n", "2", "-o", "PARTS"}},
		command{name: "memory --training", args: []string{"memory", "--training", "MODEL"}})
	write("finetune", "finetune", "--teacher", "MODEL", "--data", "DATA", "--steps", "1", "--batch", "1")
	write("distill", "distill", "--data", "DATA", "--steps", "1", "--batch", "1", "--teacher")
	write("quantize --auto", "quantize", "--auto", "--min-sqnr", "20", "--allow-random-inputs")
	return list
}
