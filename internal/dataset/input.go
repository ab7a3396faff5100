package dataset

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// An Input is one input of a model, or one of its outputs where recorded ones are read.
type Input struct {
	Name string
	Type *ir.Type       // nil where the model does not say, and for all but tensors
	Kind onnx.ValueKind // what a file of one such value holds
}

// Inputs are those that g needs to be fed: an input with an initializer has its value.
func Inputs(g *ir.Graph) []Input {
	var in []Input
	for _, v := range g.Inputs {
		if v.Const == nil {
			in = append(in, Input{v.Name, v.Type, onnx.KindOf(v)})
		}
	}
	return in
}

// Outputs are what g computes.
func Outputs(g *ir.Graph) []Input {
	var out []Input
	for _, v := range g.Outputs {
		out = append(out, Input{v.Name, v.Type, onnx.KindOf(v)})
	}
	return out
}

// dims are in's axes as far as the model and sizes, by the names of open axes, fix them;
// nil where the rank is unknown.
func (in Input) dims(sizes map[string]int64) []ir.Dim {
	if in.Type == nil || in.Type.Shape == nil {
		return nil
	}
	dims := make([]ir.Dim, len(in.Type.Shape))
	for i, d := range in.Type.Shape {
		if n, ok := sizes[d.Param]; ok && d.Param != "" {
			d = ir.Dim{N: n}
		}
		dims[i] = d
	}
	return dims
}

// elem is in's element type, Undefined where the model does not say.
func (in Input) elem() ir.DType {
	if in.Type == nil {
		return ir.Undefined
	}
	return in.Type.Elem
}

func names(in []Input) []string {
	out := make([]string, len(in))
	for i := range in {
		out[i] = in[i].Name
	}
	return out
}
