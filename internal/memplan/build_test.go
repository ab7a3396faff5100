package memplan

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// A builder makes a model of opset 17 whose nodes are added one after another.
type builder struct {
	*ir.Model
	last *ir.Value
}

// build begins with an input; sizes below zero are open axes, the first of them called batch.
func build(input string, shape ...int64) *builder {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	b := &builder{Model: m}
	b.last = b.typed(input, shape...)
	m.Graph.Inputs = append(m.Graph.Inputs, b.last)
	return b
}

func (b *builder) typed(name string, shape ...int64) *ir.Value {
	v := b.Graph.AddValue(name)
	v.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{}}
	for _, n := range shape {
		d := ir.Dim{N: n}
		if n < 0 {
			d.Param = "batch"
		}
		v.Type.Shape = append(v.Type.Shape, d)
	}
	return v
}

// weight is a constant of zeros.
func (b *builder) weight(shape ...int64) *ir.Value {
	spec := ir.Spec{DType: ir.Float, Shape: shape}
	return b.Graph.AddConst("w", &ir.Tensor{Spec: spec, Source: ir.Mem(make([]byte, spec.Bytes()))})
}

// node reads the last value and the given ones; its output is named after
// a colon.
func (b *builder) node(op string, more []*ir.Value, attrs ...*ir.Attr) *builder {
	typ, name, _ := strings.Cut(op, ":")
	n := b.Graph.NewNode(ir.OpID{Type: typ}, append([]*ir.Value{b.last}, more...), attrs...)
	n.Name = typ + "_" + name
	b.last = b.Graph.AddValue(name)
	n.SetOutputs(b.last)
	b.Graph.Append(n)
	return b
}

func (b *builder) conv(name string, out, in, kernel int64, attrs ...*ir.Attr) *builder {
	return b.node("Conv:"+name, []*ir.Value{b.weight(out, in, kernel, kernel)}, attrs...)
}

// facts ends the model with an output.
func (b *builder) facts(t *testing.T, o Options) *Planned {
	t.Helper()
	got, err := b.try(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (b *builder) try(t *testing.T, o Options) (*Planned, error) {
	t.Helper()
	if len(b.Graph.Outputs) == 0 {
		b.Graph.AddOutput(b.last)
	}
	return Model(t.Context(), &onnx.File{Model: b.Model, Path: "built"}, o)
}

func bytesOf(ports []memoryplan.Port) int64 {
	n := int64(0)
	for _, p := range ports {
		n += p.Bytes
	}
	return n
}

// unread is a payload that must not be read.
type unread struct{}

func (unread) ReadAt([]byte, int64) (int, error) { return 0, errors.New("a weight was read") }
