package distill

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An edge is an input of a node, by the name of what the node makes.
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

// codes are those of an activation whose range is known ahead, as arrays that graphs are fed with.
type codes struct {
	scale, zero           *ir.Array
	low, high             *ir.Array // the ends of the range
	firstScale, firstZero []byte
}

// edges takes note of the activations that go through codes in the copy, and of what those stand for. What has none any more
// keeps those that it had at first.
func (r *rounding) edges(c *pass.Context) error {
	for _, k := range r.codes {
		k.set(k.firstScale, k.firstZero)
	}
	for n := range c.Model.Graph.Nodes() {
		if n.Op.Is("DynamicQuantizeLinear") {
			r.dynamic = true
		}
		if !n.Op.Is("DequantizeLinear") || n.Input(0).Producer() == nil || !n.Input(0).Producer().Op.Is("QuantizeLinear") {
			continue
		}
		scale, zero := n.Input(1), n.Input(2)
		if scale.Const == nil || zero == nil || zero.Const == nil || scale.Const.Elems() != 1 {
			continue
		}
		s, err := c.Eval.ReadAll(c, scale.Const)
		if err != nil {
			return err
		}
		z, err := c.Eval.ReadAll(c, zero.Const)
		if err != nil {
			return err
		}
		for _, u := range n.Outputs[0].Uses() {
			if u.Node != nil {
				r.take(edgeOf(u.Node, u.Index), zero.Const.DType, s, z)
			}
		}
	}
	return nil
}

// take gives an edge a scale and a zero point.
func (r *rounding) take(e edge, dt ir.DType, scale, zero []byte) {
	c := r.codes[e]
	if c == nil {
		c = &codes{scale: ir.NewArray(ir.Float), zero: ir.NewArray(dt), low: ir.NewArray(ir.Float), high: ir.NewArray(ir.Float), firstScale: scale, firstZero: zero}
		r.codes[e] = c
	}
	c.set(scale, zero)
}

func (c *codes) set(scale, zero []byte) {
	copy(c.scale.Data, scale)
	copy(c.zero.Data, zero)
	dt, at := c.zero.DType, make([]float64, 1)
	number.Read(at, c.zero, 0)
	step, lowest, highest := float64(ir.View[float32](c.scale)[0]), 0.0, math.Exp2(float64(dt.Bits()))-1
	if dt == ir.Int8 || dt == ir.Int16 {
		lowest, highest = -(highest+1)/2, (highest-1)/2
	}
	ir.View[float32](c.low)[0], ir.View[float32](c.high)[0] = float32((lowest-at[0])*step), float32((highest-at[0])*step)
}
