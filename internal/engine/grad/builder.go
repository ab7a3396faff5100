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

// A Builder builds a graph of nodes of ONNX's newest operator set and of the engine's own operators.
type Builder struct {
	Model *ir.Model

	types     map[*ir.Value]ir.Spec
	constants map[string]*ir.Value // small ones, by type and payload
}

// NewBuilder returns a builder of an empty graph.
func NewBuilder() *Builder {
	b := &Builder{Model: ir.NewModel(), types: map[*ir.Value]ir.Spec{}, constants: map[string]*ir.Value{}}
	b.Model.Opsets = []ir.Opset{{Domain: op.Newest, Version: opset.Newest}, {Domain: own, Version: 1},
		{Domain: half.Domain, Version: 1}}
	return b
}

// Graph returns the graph. New nodes are appended.
func (b *Builder) Graph() *ir.Graph { return b.Model.Graph }

// Input adds an input with a free name derived from hint.
func (b *Builder) Input(hint string, dt ir.DType, shape ...int64) *ir.Value {
	v := b.Graph().NewValue(hint)
	v.Type = typeOf(ir.Spec{DType: dt, Shape: shape})
	b.Graph().Inputs = append(b.Graph().Inputs, v)
	b.SetType(v, dt, shape...)
	return v
}

// Shape returns the shape of a value of the forward graph.
func (b *Builder) Shape(v *ir.Value) []int64 { return b.types[v].Shape }

// DType returns the element type of a value of the forward graph.
func (b *Builder) DType(v *ir.Value) ir.DType { return b.types[v].DType }

// Bytes returns the size of a value of the forward graph.
func (b *Builder) Bytes(v *ir.Value) int64 { return b.types[v].Bytes() }

// SetType sets the type of a value of the forward graph.
func (b *Builder) SetType(v *ir.Value, dt ir.DType, shape ...int64) {
	b.types[v] = ir.Spec{Name: v.Name, DType: dt, Shape: shape}
}

// Value returns the value of this name, nil if there is none.
func (b *Builder) Value(name string) *ir.Value {
	for v := range b.Model.Values() {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// New creates a node with one output that is not in the graph yet.
func (b *Builder) New(id ir.OpID, in []*ir.Value, attrs ...*ir.Attr) *ir.Node {
	n := b.Graph().NewNode(id, in, attrs...)
	n.SetOutputs(b.Graph().NewValue("k"))
	return n
}

// Op appends a node of ONNX's newest operator set with one output.
func (b *Builder) Op(typ string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	return b.add(ir.OpID{Domain: newest, Type: typ}, 1, in, attrs)[0]
}

// Own appends a node of the engine's own operators.
func (b *Builder) Own(typ string, outputs int, in []*ir.Value, attrs ...*ir.Attr) []*ir.Value {
	return b.add(ir.OpID{Domain: own, Type: typ}, outputs, in, attrs)
}

func (b *Builder) add(id ir.OpID, outputs int, in []*ir.Value, attrs []*ir.Attr) []*ir.Value {
	g := b.Graph()
	n := g.NewNode(id, in, attrs...)
	outs := make([]*ir.Value, outputs)
	for i := range outs {
		outs[i] = g.NewValue("g")
	}
	n.SetOutputs(outs...)
	g.Append(n)
	return outs
}

// Ints returns a constant vector of int64.
func (b *Builder) Ints(is ...int64) *ir.Value {
	return b.constant("i", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}},
		Source: ir.Ints(is...)})
}

// Scalar returns a constant of rank 0 of a floating-point type.
func (b *Builder) Scalar(dt ir.DType, x float64) *ir.Value {
	return b.constant("c", &ir.Tensor{Spec: ir.Spec{DType: dt}, Source: scalarPayload(dt, x)})
}

// constant adds a small constant once.
func (b *Builder) constant(hint string, c *ir.Tensor) *ir.Value {
	key := fmt.Sprintf("%s %x", c.Spec, []byte(c.Source.(ir.Mem)))
	v := b.constants[key]
	if v == nil {
		v = b.Graph().AddConst(hint, c)
		b.constants[key] = v
	}
	return v
}

// Zeros returns a tensor of zeros.
func (b *Builder) Zeros(dt ir.DType, shape []int64) *ir.Value {
	return b.Op("Expand", []*ir.Value{b.Scalar(dt, 0), b.Ints(shape...)})
}

// Scale returns v times a number. v has type dt.
func (b *Builder) Scale(v *ir.Value, dt ir.DType, by float64) *ir.Value {
	if by == 1 {
		return v
	}
	return b.Op("Mul", []*ir.Value{v, b.Scalar(dt, by)})
}

// Cast converts v to another type.
func (b *Builder) Cast(v *ir.Value, dt ir.DType) *ir.Value {
	return b.Op("Cast", []*ir.Value{v}, ir.IntAttr("to", int64(dt)))
}

// Reshape returns v with another shape.
func (b *Builder) Reshape(v *ir.Value, shape []int64) *ir.Value {
	// Shapes are numbers here: without allowzero a 0 would copy the size of the input instead of an empty axis.
	return b.Op("Reshape", []*ir.Value{v, b.Ints(shape...)}, ir.IntAttr("allowzero", 1))
}

// Transpose returns v with permuted axes.
func (b *Builder) Transpose(v *ir.Value, perm []int64) *ir.Value {
	return b.Op("Transpose", []*ir.Value{v}, ir.IntsAttr("perm", perm...))
}

// SumTo reverses a broadcast from shape want to shape have: it sums v over the axes that were repeated.
func (b *Builder) SumTo(v *ir.Value, have, want []int64) *ir.Value {
	var axes []int64
	added := len(have) - len(want)
	for i, n := range have {
		if i < added || want[i-added] == 1 && n != 1 {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) > 0 {
		// Axes are kept, as repeated axes of size 1 stay; those that broadcasting added are dropped by the Reshape.
		v = b.Op("ReduceSum", []*ir.Value{v, b.Ints(axes...)}, ir.IntAttr("keepdims", 1))
	}
	if added > 0 {
		v = b.Reshape(v, want)
	}
	return v
}
