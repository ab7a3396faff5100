package grad

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/backward"
	"github.com/mcompress/mcompress/ir"
)

var pools = []rule{
	{Type: "MaxPool", Forward: keepIndicesInWindow, Backward: unknownForm},
	{Type: "GlobalMaxPool", Forward: keepGlobalIndex, Backward: unknownForm},
	{Domain: own, Type: "MaxPoolKeep", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return t.Own("MaxPoolGrad", 1, []*ir.Value{dy[0], n.Outputs[1]}, poolAttributes(t, n)...), nil
	}},
	{Domain: own, Type: "BatchNormPoolTrain", Backward: normPool},
	{Type: "AveragePool", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return t.Own("AveragePoolGrad", 1, dy[:1], poolAttributes(t, n)...), nil
	}},
	{Type: "GlobalAveragePool", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		shape := t.Shape(n.Input(0))
		each := t.Op("Mul", []*ir.Value{dy[0], t.Scalar(t.DType(n.Input(0)), 1/elements(shape[2:]))})
		return []*ir.Value{t.Op("Expand", []*ir.Value{each, t.Ints(shape...)})}, nil
	}},
}

// unknownForm is the rule of nodes without a supported form.
func unknownForm(*Tape, *ir.Node, []*ir.Value) ([]*ir.Value, error) { return nil, errUnknownForm }

// poolAttributes returns n's attributes and its input's shape.
func poolAttributes(t *Tape, n *ir.Node) []*ir.Attr {
	return append(slices.Clone(n.Attrs), ir.IntsAttr("shape", t.Shape(n.Input(0))...))
}

func elements(shape []int64) float64 {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}

// keepIndicesInWindow makes MaxPool store the index of each maximum within its window, unless its output of indices is
// consumed.
func keepIndicesInWindow(t *Tape, n *ir.Node) error {
	x := n.Input(0)
	if dt := t.DType(x); dt != ir.Float && dt != ir.Double {
		return nil
	}
	if len(n.Outputs) > 1 && n.Outputs[1] != nil && len(n.Outputs[1].Uses()) > 0 {
		return nil
	}
	places := t.Graph().NewValue("places")
	taken := elements(n.Attr("kernel_shape").Ints)
	t.SetType(places, backward.PlaceType(int(taken)), t.Shape(n.Outputs[0])...)
	if norm := x.Producer(); taken <= backward.MostTaken && feedsOnly(norm, x) {
		fusePool(norm, n, places)
		return nil
	}
	n.Op = ir.OpID{Domain: own, Type: "MaxPoolKeep"}
	n.SetOutputs(n.Outputs[0], places)
	return nil
}

// feedsOnly reports whether norm is BatchNormTrain and its output x has one consumer. The statistics have no consumers
// yet: theirs are added later, and may follow that consumer.
func feedsOnly(norm *ir.Node, x *ir.Value) bool {
	return is(norm, own, "BatchNormTrain") && len(x.Uses()) == 1 && !slices.ContainsFunc(norm.Outputs[1:], isConsumed)
}

// fusePool fuses norm and the pool n.
func fusePool(norm, n *ir.Node, places *ir.Value) {
	n.Op = ir.OpID{Domain: own, Type: "BatchNormPoolTrain"}
	outputs := slices.Concat([]*ir.Value{n.Outputs[0], places}, norm.Outputs[1:])
	// A value has one producer: norm gives its outputs up first.
	norm.SetOutputs()
	n.SetOutputs(outputs...)
	for _, a := range norm.Attrs {
		n.SetAttr(a)
	}
	for i, v := range norm.Inputs() {
		n.SetInput(i, v)
	}
	norm.Remove()
}

func normPool(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	if dy[0] == nil || slices.ContainsFunc(dy[1:], func(v *ir.Value) bool { return v != nil }) {
		return nil, errUnknownForm
	}
	in := []*ir.Value{n.Input(0), n.Input(1), n.Outputs[2], n.Outputs[3], dy[0], n.Outputs[1]}
	return t.Own("BatchNormPoolGrad", 3, in, n.Attrs...), nil
}

// keepGlobalIndex is keepIndicesInWindow for one window over the whole input.
func keepGlobalIndex(t *Tape, n *ir.Node) error {
	shape := t.Shape(n.Input(0))
	if elements(shape) == 0 {
		return nil
	}
	n.SetAttr(ir.IntsAttr("kernel_shape", shape[2:]...))
	return keepIndicesInWindow(t, n)
}
