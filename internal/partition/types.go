package partition

import (
	"context"
	"maps"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/onnx"
)

// types are the types of a model's values. No weights are read.
type types struct {
	sizes map[string]ir.Spec // in a run; nil if the engine cannot plan the model
	wider map[string]ir.Spec // in a run with dynamic axes of twice the size; nil if there is none
}

// typesOf plans runs of m with the given sizes of dynamic axes; unknown axis names are errors. If a run cannot
// be planned, values have no sizes.
func typesOf(ctx context.Context, m *ir.Model, r dataset.Random) (*types, error) {
	t := &types{}
	inputs := dataset.Inputs(m.Graph)
	for _, in := range inputs {
		if in.Kind != onnx.TensorValue || in.Type == nil || in.Type.Shape == nil || !in.Type.Elem.Known() {
			return t, nil
		}
	}
	specs, err := dataset.Specs(inputs, r)
	if err != nil {
		return nil, err
	}
	// Unfused and with all values kept: a fusion would have no types for the values inside it, where a cut may be.
	e, err := engine.Open(ctx, m, engine.Options{PlanOnly: true, NoFusion: true, KeepAll: true})
	if err != nil {
		return t, nil // the weights are known anyway
	}
	defer e.Close()
	given, twice := map[string]ir.Spec{}, map[string]ir.Spec{}
	for i, s := range specs {
		given[s.Name], twice[s.Name] = s, longer(s, inputs[i].Type)
	}
	t.sizes, t.wider = planned(e, given), planned(e, twice)
	return t, nil
}

// planned are the types in a run with these inputs, nil if it cannot be planned.
func planned(e *engine.Interpreter, in map[string]ir.Spec) map[string]ir.Spec {
	all, err := e.Types(in)
	if err != nil {
		return nil
	}
	maps.Copy(all, in)
	return all
}

// longer is s with dynamic axes of twice the size: divisibility by strides is preserved.
func longer(s ir.Spec, declared *ir.Type) ir.Spec {
	shape := make([]int64, len(s.Shape))
	for i, n := range s.Shape {
		shape[i] = n
		if !declared.Shape[i].Known() {
			shape[i] = 2 * n
		}
	}
	s.Shape = shape
	return s
}

// bytes is the size of v in the run, 0 if unknown.
func (t *types) bytes(v *ir.Value) int64 {
	s, known := t.spec(v)
	if !known {
		return 0
	}
	return s.Bytes()
}

// spec is the type of v in the run.
func (t *types) spec(v *ir.Value) (ir.Spec, bool) {
	if v.Const != nil {
		return v.Const.Spec, true
	}
	if v.Ambiguous {
		return ir.Spec{}, false
	}
	s, known := t.sizes[v.Name]
	return s, known && s.Valid() == nil
}

// declaration is the declared type of v when passed between files: from the model, or inferred
// from nodes and plans, with axes dynamic that depend on dynamic axes.
// It is nil if the element type or the rank is unknown, or if v is not a tensor.
func (t *types) declaration(v *ir.Value) *ir.Type {
	if stated := v.Type; stated != nil && stated.Elem.Known() && stated.Shape != nil {
		return stated
	}
	if s, known := t.spec(v); known {
		return &ir.Type{Elem: s.DType, Shape: t.open(v, s)}
	}
	elem := opset.Elem(v)
	if shape, known := opset.Shape(v); known && elem.Known() {
		return &ir.Type{Elem: elem, Shape: shape}
	}
	return nil
}

// open is the shape of v; axes that differ between the two runs are dynamic.
func (t *types) open(v *ir.Value, s ir.Spec) []ir.Dim {
	other := t.wider[v.Name]
	dims := make([]ir.Dim, len(s.Shape))
	for i, n := range s.Shape {
		dims[i] = ir.Dim{N: -1}
		if len(other.Shape) == len(s.Shape) && other.Shape[i] == n {
			dims[i].N = n
		}
	}
	return dims
}
