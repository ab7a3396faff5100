package partition

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// flops estimates the operations of n in a run: two per multiply-add of products, one per output element of
// other operators.
func (t *types) flops(n *ir.Node) int64 {
	made := int64(0)
	for _, v := range n.Outputs {
		if v == nil {
			continue
		}
		if s, known := t.spec(v); known {
			made += s.Elems()
		}
	}
	return made * t.work(n)
}

// work is the number of operations per output element.
func (t *types) work(n *ir.Node) int64 {
	for _, in := range operator.Of(n).Inputs {
		switch in.Role {
		case operator.Matrix:
			return 2 * t.summed(n)
		case operator.Filter:
			return 2 * t.window(n, in)
		case operator.Gates:
			return 2 * gates(t, n)
		}
	}
	return 1
}

// summed is the length of the reduction axis of a product, by its first input.
func (t *types) summed(n *ir.Node) int64 {
	s, _ := t.spec(n.Input(0))
	if axes, ok := operator.Of(n).Input(0).Axes(n, len(s.Shape)); ok && len(axes.Reduction) == 1 {
		return t.axis(n.Input(0), axes.Reduction[0])
	}
	return t.axis(n.Input(0), -1)
}

// window is the number of multiply-adds per output element of a convolution. A transposed one multiplies each input
// element by a filter.
func (t *types) window(n *ir.Node, filter operator.Input) int64 {
	w := n.Input(filter.Index)
	perFilter := t.elems(w) / t.axis(w, 0)
	s, _ := t.spec(w)
	// The output channels of a transposed filter (C × M/group × …) are not its first axis: elems/axis(0) is then
	// the work of an input element, and is spread over the outputs.
	if axes, ok := filter.Axes(n, len(s.Shape)); ok && axes.Output[0] != 0 {
		return t.elems(n.Input(0)) * perFilter / max(1, t.elems(n.Outputs[0]))
	}
	return perFilter
}

// gates is W and R of the gates of a direction for each step's hidden state.
func gates(t *types, n *ir.Node) int64 {
	hidden := t.axis(n.Input(2), -1)
	// W is directions × gates·hidden × inputs, R directions × gates·hidden × hidden.
	return (t.elems(n.Input(1)) + t.elems(n.Input(2))) / (hidden * t.axis(n.Input(2), 0))
}

func (t *types) elems(v *ir.Value) int64 {
	if v == nil {
		return 0
	}
	s, known := t.spec(v)
	if !known {
		return 0
	}
	return s.Elems()
}

// axis is the size of an axis, counted from the end if negative; 1 if unknown.
func (t *types) axis(v *ir.Value, i int) int64 {
	if v == nil {
		return 1
	}
	s, known := t.spec(v)
	if i < 0 {
		i += len(s.Shape)
	}
	if !known || i < 0 || i >= len(s.Shape) {
		return 1
	}
	return max(1, s.Shape[i])
}
