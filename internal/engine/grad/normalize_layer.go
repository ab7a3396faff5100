package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// normalizations are normalizations of rows.
var normalizations = []rule{
	{Type: "LayerNormalization", Forward: keepStats(1, 2), Backward: layerNorm(1, 2, 2)},
	{Type: "RMSNormalization", Forward: keepStats(0, 1), Backward: layerNorm(0, 1, 0)},
	{Type: "SimplifiedLayerNormalization", Forward: keepStats(0, 1), Backward: layerNorm(0, 1, 0)},
	{Domain: microsoft, Type: "SimplifiedLayerNormalization", Forward: keepStats(0, 1), Backward: layerNorm(0, 1, 0)},
	{Type: "LpNormalization", Backward: lpNorm},
	{Type: "Softmax", Backward: softmax},
	{Type: "LogSoftmax", Backward: softmax},
}

// keepStats adds the outputs mean and inverse standard deviation to a node, of these indices and of the type of its
// input; zero for none.
func keepStats(mean, inv int) func(*Tape, *ir.Node) error {
	return func(t *Tape, n *ir.Node) error {
		x, outs := n.Input(0), slices.Clone(n.Outputs)
		stats := slices.Clone(t.Shape(x))
		for i := fromFront(n.Int("axis", -1), len(stats)); i < int64(len(stats)); i++ {
			stats[i] = 1
		}
		for len(outs) <= inv {
			outs = append(outs, nil)
		}
		for _, i := range []int{mean, inv} {
			if i > 0 && outs[i] == nil {
				outs[i] = t.Graph().NewValue("stats")
			}
			if i > 0 {
				t.SetType(outs[i], t.DType(x), stats...)
			}
		}
		// Statistics in the type of X: the default, float32, would be too coarse for the gradient of Double.
		n.SetAttr(ir.IntAttr("stash_type", int64(t.DType(x))))
		n.SetOutputs(outs...)
		return nil
	}
}

// layerNorm is the gradient of rows scaled by input 1 and shifted by input bias, zero if there is none. A scale that
// differs between rows is multiplied before.
func layerNorm(mean, inv, bias int) gradient {
	return func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		if slices.ContainsFunc(dy[1:], func(v *ir.Value) bool { return v != nil }) || dy[0] == nil {
			return nil, errUnknownForm
		}
		x, scale := n.Input(0), n.Input(1)
		axis := fromFront(n.Int("axis", -1), len(t.Shape(x)))
		in := []*ir.Value{x, dy[0], n.Outputs[inv], scale, nil}
		if mean > 0 {
			in[4] = n.Outputs[mean]
		}
		attr := ir.IntAttr("axis", axis)
		dx := make([]*ir.Value, 3)
		if row := t.Shape(x)[axis:]; slices.Equal(t.Shape(scale), row) &&
			(bias == 0 || n.Input(bias) == nil || slices.Equal(t.Shape(n.Input(bias)), row)) {
			return t.Own("LayerNormGrad", 3, in, attr), nil
		}
		in[3] = nil
		if one, ok := t.elements.scalar(scale); !ok || one != 1 {
			in[1] = t.Op("Mul", []*ir.Value{dy[0], scale})
		}
		dx[0] = t.Own("LayerNormGrad", 1, in, attr)[0]
		if t.Needs(scale) {
			dx[1] = sumToOperand(t, n, 1, t.Op("Mul", []*ir.Value{dy[0], standardize(t, x, in[2], in[4])}))
		}
		if bias > 0 {
			dx[bias] = sumToOperand(t, n, bias, dy[0])
		}
		return dx, nil
	}
}

// standardize is (x-mean)·inv; mean may be nil.
func standardize(t *Tape, x, inv, mean *ir.Value) *ir.Value {
	if mean != nil {
		x = t.Op("Sub", []*ir.Value{x, mean})
	}
	return t.Op("Mul", []*ir.Value{x, inv})
}

// lpNorm: y = x/‖x‖ has the gradient (dY - s·Σ dY·y)/‖x‖, where s is y for p = 2, and the sign of x for p = 1.
func lpNorm(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	x, y, dt := n.Input(0), n.Outputs[0], t.DType(n.Input(0))
	axes, keep := t.Ints(n.Int("axis", -1)), ir.IntAttr("keepdims", 1)
	side, norm := y, "ReduceL2"
	if n.Int("p", 2) == 1 {
		side, norm = t.Op("Sign", []*ir.Value{x}), "ReduceL1"
	}
	length := t.Op(norm, []*ir.Value{x, axes}, keep)
	along := t.Op("ReduceSum", []*ir.Value{t.Op("Mul", []*ir.Value{dy[0], y}), axes}, keep)
	across := t.Op("Sub", []*ir.Value{dy[0], t.Op("Mul", []*ir.Value{side, along})})
	zero := t.Scalar(dt, 0) // 0/0 is 0
	none := t.Op("Equal", []*ir.Value{length, zero})
	return []*ir.Value{t.Op("Where", []*ir.Value{none, zero, t.Op("Div", []*ir.Value{across, length})})}, nil
}
