package float

import (
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// maskLimit is the fraction of the range that constants that represent infinity have in masks: large enough that what
// they are added to is lost in rounding, as in float32, and small enough that the sum with scores does not exceed the
// range.
const maskLimit = 3. / 4

// largeFraction is the fraction of the range from which on constants may make a value exceed it: sums and products of a
// few of them do.
const largeFraction = 1. / 16

// limitOf is the magnitude to which v is clamped before it is cast to 16 bits; 0 if no constant makes it larger than
// the type's range. A mask is added to other values in 16 bits.
func (x *graphConversion) limitOf(v *ir.Value) float32 {
	switch {
	case !x.exceedsRange[v]:
		return 0
	case x.isMask(v, map[*ir.Value]bool{}):
		return x.largest * maskLimit
	}
	return x.largest
}

// isMask reports whether v is computed from integers, truth values and constants only. It visits each value once.
func (x *graphConversion) isMask(v *ir.Value, visited map[*ir.Value]bool) bool {
	switch {
	case v == nil || v.Const != nil || visited[v]:
		return true
	case v.Type != nil && v.Type.Elem != ir.Float && v.Type.Elem != ir.Undefined:
		return true
	}
	visited[v] = true
	n := v.Producer()
	if n == nil || n.Callee() != nil {
		return false
	}
	// An If is a mask if all its branches are; values of a Loop or Scan change with its iterations.
	if operator.Of(n).ControlFlow {
		if len(n.Inputs()) > 1 {
			return false // Loop and Scan
		}
		for g := range n.Subgraphs() {
			if i := slices.Index(n.Outputs, v); i >= len(g.Outputs) || !x.isMask(g.Outputs[i], visited) {
				return false
			}
		}
		return true
	}
	if dt := opset.Elem(v); dt != ir.Float && dt != ir.Undefined {
		return true
	}
	for _, in := range n.Inputs() {
		if !x.isMask(in, visited) {
			return false
		}
	}
	return true
}

// fillLimit is the magnitude to which v, a constant that represents infinity, is clamped: as a bound it must not change
// numbers of the type.
func (x *graphConversion) fillLimit(v *ir.Value) float32 {
	for _, u := range pass.LeafUses(v) {
		// A bound below the largest number would clip numbers that the type has.
		if f := operator.Of(u.Node); f.Clamps || f.Move == operator.Compares {
			return x.largest
		}
	}
	return x.largest * maskLimit
}

// keepProducts keeps products with v, a constant that represents infinity, in float32: other factors need not be 0 or
// 1.
func (x *graphConversion) keepProducts(v *ir.Value) {
	for _, u := range pass.LeafUses(v) {
		if operator.Of(u.Node).Affine == operator.Factor && x.floatReasons[u.Node].None() {
			x.floatReasons[u.Node] = pass.Reason{Code: pass.FloatWeight, Detail: v.Name}
		}
	}
}

// keepSums keeps sums of several values that are computed from large constants in float32, whose result is clamped:
// each of them is clamped to a part of the range, but two masks of one position exceed it.
func (x *graphConversion) keepSums() {
	masked := x.maskedValues()
	large := func(v *ir.Value) bool { return x.exceedsRange[v] || masked[v] || x.fills[v] }
	for n := range x.step.Model.Nodes() {
		if f := operator.Of(n); f.Affine != operator.Offset && !n.Op.Is("Sum") {
			continue
		}
		// One mask is clamped such that scores fit beside it; two are not.
		count := 0
		for _, v := range n.Inputs() {
			if v != nil && large(v) {
				count++
			}
		}
		if count > 1 {
			x.exceedsRange[n.Outputs[0]] = true
			if x.floatReasons[n].None() {
				x.floatReasons[n] = pass.Reason{Code: pass.FloatRange, Detail: "sums of masks"}
			}
		}
	}
	x.propagate()
}

// markInteger marks v if it is a small constant of integers beyond the type's range, from which masks are computed as
// well.
func (x *graphConversion) markInteger(v *ir.Value) {
	if v.Const.DType != ir.Int64 && v.Const.DType != ir.Int32 || v.Const.Elems() > maxSmallConst {
		return
	}
	is, ok := v.Ints()
	x.exceedsRange[v] = ok && slices.ContainsFunc(is, func(i int64) bool {
		return math.Abs(float64(i)) > float64(x.largest)*largeFraction
	})
}

// markDivisions marks quotients by constants so small that they may exceed the type's range.
func (x *graphConversion) markDivisions(ctx context.Context) error {
	for n := range x.step.Model.Nodes() {
		d := n.Input(1)
		if operator.Of(n).Affine != operator.Factor || operator.Of(n).Commutative || d == nil || d.Const == nil ||
			d.Const.DType != ir.Float || d.Const.Elems() > maxSmallConst {
			continue
		}
		smallest := 1 / (float64(x.largest) * largeFraction)
		err := pass.Scan(ctx, x.step.Eval, d.Const, func(values []float32, _ int64) error {
			for _, v := range values {
				if size := math.Abs(float64(v)); size > 0 && size < smallest {
					x.exceedsRange[n.Outputs[0]] = true
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// markAttributes marks the outputs of nodes with large numbers in attributes: ConstantOfShape, and Pad of old opsets.
func (x *graphConversion) markAttributes(ctx context.Context) error {
	for n := range x.step.Model.Nodes() {
		a := n.Attr("value")
		if a == nil || len(n.Outputs) == 0 || n.Outputs[0] == nil {
			continue
		}
		value := a.F
		if a.Tensor != nil {
			if a.Tensor.DType != ir.Float || a.Tensor.Elems() != 1 {
				continue
			}
			s, err := x.scan(ctx, x.step, a.Tensor)
			if err != nil {
				return err
			}
			value = math.Float32frombits(s.maxBits)
		}
		if math.Abs(float64(value)) > float64(x.largest)*largeFraction && !math.IsInf(float64(value), 0) {
			x.exceedsRange[n.Outputs[0]] = true
		}
	}
	return nil
}

// propagate marks all values that are computed from marked ones, up to operators whose outputs are bounded.
func (x *graphConversion) propagate() {
	calls := map[*ir.Function][]*ir.Node{}
	for n := range x.step.Model.Nodes() {
		if f := n.Callee(); f != nil {
			calls[f] = append(calls[f], n)
		}
	}
	var next []*ir.Value
	mark := func(vs ...*ir.Value) {
		for _, v := range vs {
			if v != nil && !x.exceedsRange[v] {
				x.exceedsRange[v] = true
				next = append(next, v)
			}
		}
	}
	for v, is := range x.exceedsRange {
		if is {
			next = append(next, v)
		} else {
			delete(x.exceedsRange, v)
		}
	}
	for len(next) > 0 {
		v := next[len(next)-1]
		next = next[:len(next)-1]
		for _, u := range v.Uses() {
			n := u.Node
			switch {
			// An output of a subgraph is one of the node that has it.
			case n == nil && u.Graph.Owner != nil:
				mark(u.Graph.Owner.Outputs...)
				// A loop-carried value is an input of the next iteration.
				mark(u.Graph.Inputs...)
			case n == nil:
				for _, call := range calls[u.Graph.Function()] {
					if u.Index < len(call.Outputs) {
						mark(call.Outputs[u.Index])
					}
				}
			case n.Callee() != nil:
				if in := n.Callee().Body.Inputs; u.Index < len(in) {
					mark(in[u.Index])
				}
			// Which input of the node is which of the subgraph differs between operators: all are marked, which costs a
			// clamp and no correctness.
			case operator.Of(n).ControlFlow:
				for g := range n.Subgraphs() {
					mark(g.Inputs...)
				}
			case passesMagnitude(u):
				mark(n.Outputs...)
			}
		}
	}
}

// passesMagnitude reports whether an output of u's node is as large as the input of u.
func passesMagnitude(u ir.Use) bool {
	f := operator.Of(u.Node)
	if f.Move.Moves() {
		return f.MovesInput(u.Index)
	}
	return !f.Bounded && !f.ZeroGradient && len(f.With(operator.Gain)) == 0
}
