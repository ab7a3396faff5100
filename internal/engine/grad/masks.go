package grad

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// regions are the gradients of piecewise linear activations: dY times on where input 0 is between two bounds, and times
// off elsewhere. The derivative of HardSwish is linear in between, and the slopes of PRelu have a gradient: these need
// their input.
var regions = map[string]func(t *Tape, n *ir.Node, dt ir.DType) region{
	"ReluGrad":            aboveZero,
	"ThresholdedReluGrad": aboveZero,
	"LeakyReluGrad": func(t *Tape, n *ir.Node, dt ir.DType) region {
		return region{lo: t.Scalar(dt, 0), on: 1, off: n.Float("alpha", 0.01)}
	},
	"HardSigmoidGrad": func(t *Tape, n *ir.Node, dt ir.DType) region {
		return region{lo: t.Scalar(dt, 0), hi: t.Scalar(dt, 1), on: n.Float("alpha", 0.2)}
	},
	"ClipGrad": func(t *Tape, n *ir.Node, dt ir.DType) region {
		bound := func(i int, attr string) *ir.Value {
			if a := n.Attr(attr); a != nil {
				return t.Scalar(dt, float64(a.F))
			}
			return n.Input(i)
		}
		return region{lo: bound(2, "min"), hi: bound(3, "max"), on: 1}
	},
}

// A region has bounds, nil for none, and the derivatives within and outside.
type region struct {
	lo, hi  *ir.Value
	on, off float32
}

func aboveZero(t *Tape, _ *ir.Node, dt ir.DType) region { return region{lo: t.Scalar(dt, 0), on: 1} }

// storeMasks replaces results that the backward pass consumes only as the region of piecewise linear activations by bit
// masks, an eighth of a byte per element. Results that are stored for another consumer are unchanged: a mask would be
// stored in addition.
func (t *Tape) storeMasks() {
	forward := t.forwardSet()
	for _, n := range t.forward {
		for _, v := range n.Outputs {
			if v != nil && t.isMaskable(v, forward) {
				t.storeMask(v, forward)
			}
		}
	}
	// Masks are part of the forward pass, at their place in its order.
	t.forward = t.forward[:0]
	for n := range t.Graph().Nodes() {
		if forward[n] {
			t.forward = append(t.forward, n)
		}
	}
}

// isMaskable reports whether the backward pass consumes v, and only as the region of activations.
func (t *Tape) isMaskable(v *ir.Value, forward map[*ir.Node]bool) bool {
	uses := usesOutside(v, forward)
	return len(uses) > 0 && !slices.ContainsFunc(uses, func(u ir.Use) bool {
		return u.Index != 0 || u.Node.Op.Domain != own || regions[u.Node.Op.Type] == nil
	})
}

// storeMask adds a mask of v for each gradient that consumes v.
func (t *Tape) storeMask(v *ir.Value, forward map[*ir.Node]bool) {
	for _, u := range usesOutside(v, forward) {
		r := regions[u.Node.Op.Type](t, u.Node, t.DType(v))
		mask := t.New(ir.OpID{Domain: own, Type: "ActivationMask"}, []*ir.Value{v, r.lo, r.hi})
		mask.Name = v.Producer().Label()
		t.SetType(mask.Outputs[0], ir.Uint8, int64(math.Ceil(elements(t.Shape(v))/8)))
		t.Graph().InsertBefore(v.Producer().Next(), mask)
		forward[mask] = true
		grad := t.Graph().NewNode(ir.OpID{Domain: own, Type: "MaskedGrad"},
			[]*ir.Value{u.Node.Input(1), mask.Outputs[0]},
			ir.FloatAttr("on", r.on), ir.FloatAttr("off", r.off))
		grad.Name, t.gradients.layers[grad] = u.Node.Name, t.gradients.layers[u.Node]
		t.Graph().InsertBefore(u.Node, grad)
		outputs := u.Node.Outputs
		// A value has one producer: the old node gives its outputs up before the new one has them.
		u.Node.SetOutputs()
		grad.SetOutputs(outputs...)
		u.Node.Remove()
	}
}
