package grad

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// Domains of the nodes that rules add.
const (
	newest = op.Newest
	own    = "mcompress" // the engine's own
)

// A Tape is the graph of a training step in the making.
type Tape struct {
	Model  *ir.Model
	Params []*Param

	// Running are the statistics that BatchNormalization keeps, where it normalises by those of the batch.
	Running         []Running
	batchStatistics bool

	forward []*ir.Node // in order, once Backward was called
	copies  []*ir.Node // of those that are computed again, once Recompute was called

	types map[*ir.Value]ir.Spec
	known map[*ir.Value]*ir.Array // elements of values that are few and follow from constants and shapes
	needs map[*ir.Value]bool      // those that depend on a parameter
	grads map[*ir.Value]*ir.Value // complete once all readers of a value have given theirs
	ints  map[string]*ir.Value    // constants that rules asked for
}

// A Param is a constant of the model that training changes. In the step it is an input, whose
// array whoever runs the step keeps.
type Param struct {
	Name   string
	Tensor *ir.Tensor // what it is before training
	Value  *ir.Value  // the step's input
	Grad   *ir.Value  // its gradient; nil if nothing depends on it
}

// Empty is a tape without a forward graph, for steps that only change parameters.
func Empty() *Tape {
	t := &Tape{Model: ir.NewModel(), types: map[*ir.Value]ir.Spec{}, needs: map[*ir.Value]bool{}, grads: map[*ir.Value]*ir.Value{}, ints: map[string]*ir.Value{}}
	t.Model.Opsets = []ir.Opset{{Domain: op.Newest, Version: opset.Newest}, {Domain: own, Version: 1}, {Domain: half.Domain, Version: 1}}
	return t
}

// Input adds an input under a free name like hint.
func (t *Tape) Input(hint string, dt ir.DType, shape ...int64) *ir.Value {
	v := t.Graph().NewValue(hint)
	v.Type = typeOf(ir.Spec{DType: dt, Shape: shape})
	t.Graph().Inputs = append(t.Graph().Inputs, v)
	t.Typed(v, dt, shape...)
	return v
}

// Graph is where nodes are added, at the end.
func (t *Tape) Graph() *ir.Graph { return t.Model.Graph }

// Shape is the shape of a value of the forward graph.
func (t *Tape) Shape(v *ir.Value) []int64 { return t.types[v].Shape }

// DType is the element type of a value of the forward graph.
func (t *Tape) DType(v *ir.Value) ir.DType { return t.types[v].DType }

// Typed tells the type of a value that Forward made.
func (t *Tape) Typed(v *ir.Value, dt ir.DType, shape ...int64) {
	t.types[v] = ir.Spec{Name: v.Name, DType: dt, Shape: shape}
}

// Needs reports whether the gradient of v, which may be nil, is wanted.
func (t *Tape) Needs(v *ir.Value) bool { return v != nil && t.needs[v] }

// Op adds a node of ONNX's newest operator set with one output.
func (t *Tape) Op(typ string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	return t.add(ir.OpID{Domain: newest, Type: typ}, 1, in, attrs)[0]
}

// Own adds a node of the engine's own operators.
func (t *Tape) Own(typ string, outputs int, in []*ir.Value, attrs ...*ir.Attr) []*ir.Value {
	return t.add(ir.OpID{Domain: own, Type: typ}, outputs, in, attrs)
}

func (t *Tape) add(id ir.OpID, outputs int, in []*ir.Value, attrs []*ir.Attr) []*ir.Value {
	g := t.Graph()
	n := g.NewNode(id, in, attrs...)
	outs := make([]*ir.Value, outputs)
	for i := range outs {
		outs[i] = g.NewValue("g")
	}
	n.SetOutputs(outs...)
	g.Append(n)
	return outs
}

// Ints is a constant of integers.
func (t *Tape) Ints(is ...int64) *ir.Value {
	return t.constant("i", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}}, Source: ir.Ints(is...)})
}

// Scalar is a constant of rank 0 of a floating-point type.
func (t *Tape) Scalar(dt ir.DType, x float64) *ir.Value {
	return t.constant("c", &ir.Tensor{Spec: ir.Spec{DType: dt}, Source: number(dt, x)})
}

// Scale is v times a number. v has type dt.
func (t *Tape) Scale(v *ir.Value, dt ir.DType, by float64) *ir.Value {
	if by == 1 {
		return v
	}
	return t.Op("Mul", []*ir.Value{v, t.Scalar(dt, by)})
}

// Cast converts v to another type.
func (t *Tape) Cast(v *ir.Value, dt ir.DType) *ir.Value {
	return t.Op("Cast", []*ir.Value{v}, ir.IntAttr("to", int64(dt)))
}

// constant adds a small constant once.
func (t *Tape) constant(hint string, c *ir.Tensor) *ir.Value {
	key := fmt.Sprintf("%s %x", c.Spec, []byte(c.Source.(ir.Mem)))
	v := t.ints[key]
	if v == nil {
		v = t.Graph().AddConst(hint, c)
		t.ints[key] = v
	}
	return v
}

// Reshape gives v another shape.
func (t *Tape) Reshape(v *ir.Value, shape []int64) *ir.Value {
	return t.Op("Reshape", []*ir.Value{v, t.Ints(shape...)}, ir.IntAttr("allowzero", 1))
}

// SumTo is the gradient of an operand of shape want, of which v, of shape have, is the gradient
// after broadcasting: it is summed over the axes that were repeated.
func (t *Tape) SumTo(v *ir.Value, have, want []int64) *ir.Value {
	var axes []int64
	ahead := len(have) - len(want)
	for i, n := range have {
		if i < ahead || want[i-ahead] == 1 && n != 1 {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) > 0 {
		v = t.Op("ReduceSum", []*ir.Value{v, t.Ints(axes...)}, ir.IntAttr("keepdims", 1))
	}
	if ahead > 0 {
		v = t.Reshape(v, want)
	}
	return v
}
