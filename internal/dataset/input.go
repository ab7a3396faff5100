package dataset

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// An Input is an input of a model, or an output whose recorded values are read.
type Input struct {
	Name string
	Type *ir.Type       // nil if unknown, and for all but tensors
	Kind onnx.ValueKind // of the value in a file

	value *ir.Value // in a graph; may be nil
}

// Inputs are the inputs of g without initializers.
func Inputs(g *ir.Graph) []Input {
	var in []Input
	for _, v := range g.Inputs {
		if v.Initializer() == nil {
			in = append(in, Input{v.Name, v.Type, onnx.KindOf(v), v})
		}
	}
	return in
}

// Outputs are the outputs of g.
func Outputs(g *ir.Graph) []Input {
	var out []Input
	for _, v := range g.Outputs {
		out = append(out, Input{v.Name, v.Type, onnx.KindOf(v), v})
	}
	return out
}

// dims are in's axes; sizes has sizes of open axes by name. It is nil if the rank is unknown.
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

// elem is in's element type, Undefined if unknown.
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
