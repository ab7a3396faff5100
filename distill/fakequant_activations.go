package distill

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An edge is an input of a node, identified by the node's first output.
type edge struct {
	node  string
	input int
}

func edgeOf(n *ir.Node, i int) edge {
	if len(n.Outputs) == 0 || n.Outputs[0] == nil {
		return edge{}
	}
	return edge{n.Outputs[0].Name, i}
}

// A fakeQuantActivation is scale, zero point and range of a statically quantized activation, as inputs of training
// graphs.
type fakeQuantActivation struct {
	scale, zero               *ir.Array
	low, high                 *ir.Array // the clipping range
	initialScale, initialZero []byte
}

// observeActivations records scale and zero point of the activations between QuantizeLinear and DequantizeLinear. An
// activation that is no longer quantized keeps its initial ones.
func (f *fakeQuant) observeActivations(ctx context.Context, step *pass.Step) error {
	for _, a := range f.activations {
		a.set(a.initialScale, a.initialZero)
	}
	for n := range step.Model.Graph.Nodes() {
		if n.Op.Is("DynamicQuantizeLinear") {
			f.dynamic = true
		}
		// Weights have DequantizeLinear as well, but of a constant.
		if !n.Op.Is("DequantizeLinear") || n.Input(0).Producer() == nil || !n.Input(0).Producer().Op.Is("QuantizeLinear") {
			continue
		}
		scale, zero := n.Input(1), n.Input(2)
		// One scale for the tensor: activations that a method scales by channel or by run have no constant range to clip
		// to.
		if scale.Const == nil || zero == nil || zero.Const == nil || scale.Const.Elems() != 1 {
			continue
		}
		s, err := step.Eval.ReadAll(ctx, scale.Const)
		if err != nil {
			return err
		}
		z, err := step.Eval.ReadAll(ctx, zero.Const)
		if err != nil {
			return err
		}
		for _, u := range n.Outputs[0].Uses() {
			if u.Node != nil {
				f.setActivation(edgeOf(u.Node, u.Index), zero.Const.DType, s, z)
			}
		}
	}
	return nil
}

func (f *fakeQuant) setActivation(e edge, dt ir.DType, scale, zero []byte) {
	a := f.activations[e]
	if a == nil {
		a = &fakeQuantActivation{
			scale: ir.NewArray(ir.Float), zero: ir.NewArray(dt), low: ir.NewArray(ir.Float), high: ir.NewArray(ir.Float),
			initialScale: scale, initialZero: zero,
		}
		f.activations[e] = a
	}
	a.set(scale, zero)
}

func (a *fakeQuantActivation) set(scale, zero []byte) {
	copy(a.scale.Data, scale)
	copy(a.zero.Data, zero)
	dt, point := a.zero.DType, make([]float64, 1)
	number.Read(point, a.zero, 0)
	step, lowest, highest := float64(ir.View[float32](a.scale)[0]), 0.0, math.Exp2(float64(dt.Bits()))-1
	// The number of levels is that of the unsigned type: half of them are negative.
	if dt == ir.Int8 || dt == ir.Int16 {
		lowest, highest = -(highest+1)/2, (highest-1)/2
	}
	// What the lowest and the highest level dequantize to: x = (q - zero point) · scale.
	ir.View[float32](a.low)[0], ir.View[float32](a.high)[0] = float32((lowest-point[0])*step),
		float32((highest-point[0])*step)
}
