package quantize

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A side says on which side of a product the constant stands.
type Side uint8

const (
	Right Side = iota
	Left
	Lookup // rows are looked up, nothing is multiplied
)

// A site is one use of a constant by an operator whose integer form is known.
type Consumer struct {
	Node           *ir.Node
	Side           Side
	Shape          []int64 // of the operand, after Gemm's transposition
	Transposed     bool    // the operand is the transpose of the base, Gemm's attribute included
	Elem           ir.DType
	Use            ir.Use // where the operand enters
	Unsupported    string
	ActivationRank int  // of act(), where it is needed and known
	Mirrored       bool // written as the transpose of a product with the constant on the right
}

// A weight is a constant and all its uses.
type Weight struct {
	Base          *ir.Value
	Consumers     []*Consumer
	OtherConsumer string // a use that has no integer form, or ""
}

// sites finds the products with a constant factor, and Gathers from one, by constant,
// in the order of nodes.
func Find(c *pass.Context, embeddings bool) []*Weight {
	var ws []*Weight
	by := map[*ir.Value]*Weight{}
	for n := range c.Model.Nodes() {
		for _, s := range ConsumersAt(c, n, embeddings) {
			o := c.Trace(n.Input(s.Use.Index))
			w := by[o.Base]
			if w == nil {
				w = &Weight{Base: o.Base}
				by[o.Base] = w
				ws = append(ws, w)
			}
			w.Consumers = append(w.Consumers, s)
		}
	}
	for _, w := range ws {
		w.OtherConsumer = w.uncovered()
	}
	return ws
}

// uncovered names a use of w's constant that is no site.
func (w *Weight) uncovered() string {
	for _, l := range pass.Leaves(w.Base) {
		if l.Node == nil {
			return "a graph output"
		}
		if !slices.ContainsFunc(w.Consumers, func(s *Consumer) bool { return s.Use.Node == l.Node && s.Use.Index == l.Index }) {
			return pass.Labels([]*ir.Node{l.Node})[0]
		}
	}
	return ""
}

func (w *Weight) Nodes() []*ir.Node {
	var ns []*ir.Node
	for _, s := range w.Consumers {
		if !slices.Contains(ns, s.Node) {
			ns = append(ns, s.Node)
		}
	}
	return ns
}

// trouble is the first reason why a site cannot be rewritten.
func (w *Weight) Unsupported() string {
	for _, s := range w.Consumers {
		if s.Unsupported != "" {
			return s.Unsupported
		}
	}
	return ""
}

func ConsumersAt(c *pass.Context, n *ir.Node, embeddings bool) []*Consumer {
	switch {
	case n.Op.Is("MatMul") && len(n.Inputs()) == 2:
		return matMulConsumer(c, n, false, false)
	case n.Op.Is("Gemm") && len(n.Inputs()) >= 2:
		return matMulConsumer(c, n, n.Int("transA", 0) != 0, n.Int("transB", 0) != 0)
	case n.Op.Is("Gather") && len(n.Inputs()) == 2 && embeddings:
		return gatherConsumer(c, n)
	}
	return nil
}

func matMulConsumer(c *pass.Context, n *ir.Node, transA, transB bool) []*Consumer {
	a, b := c.Trace(n.Input(0)), c.Trace(n.Input(1))
	switch {
	case b != nil && a == nil:
		return newConsumer(n, Right, 1, b, transB)
	case a != nil && b == nil:
		return newConsumer(n, Left, 0, a, transA)
	}
	return nil // two activations, or a product of constants
}

func gatherConsumer(c *pass.Context, n *ir.Node) []*Consumer {
	o := c.Trace(n.Input(0))
	if o == nil || c.Trace(n.Input(1)) != nil {
		return nil
	}
	ss := newConsumer(n, Lookup, 0, o, false)
	for _, s := range ss {
		switch axis := n.Int("axis", 0); {
		case s.Unsupported != "":
		case axis != 0:
			s.Unsupported = fmt.Sprintf("%s gathers along axis %d; only rows have a scale of their own", n.Label(), axis)
		case s.Transposed || !slices.Equal(o.Shape, o.Base.Const.Shape):
			s.Unsupported = fmt.Sprintf("%s gathers from a transposed or reshaped table", n.Label())
		case len(s.Shape) < 2:
			s.Unsupported = fmt.Sprintf("%s gathers single numbers", n.Label())
		}
	}
	return ss
}

func newConsumer(n *ir.Node, sd Side, index int, o *pass.Operand, transpose bool) []*Consumer {
	if !o.Base.Const.DType.IsFloat() {
		return nil
	}
	s := &Consumer{Node: n, Side: sd, Elem: o.Elem, Shape: o.Shape, Transposed: o.Transposed, Use: ir.Use{Node: n, Index: index}, Unsupported: o.Trouble}
	if transpose && len(s.Shape) == 2 {
		s.Shape, s.Transposed = []int64{s.Shape[1], s.Shape[0]}, !s.Transposed
	}
	switch name := pass.FromCaller(n); {
	case s.Unsupported != "":
	case name != "":
		s.Unsupported = fmt.Sprintf("%s gets its attribute %s from the function's caller", n.Label(), name)
	case o.Elem == ir.Double || o.Base.Const.DType == ir.Double:
		s.Unsupported = "integer kernels work beside float32 and 16-bit floats, not float64"
	case len(s.Shape) == 0:
		s.Unsupported = "it is a scalar"
	}
	return []*Consumer{s}
}

// act is the other factor, or Gather's indices. Rewriting the node that makes it
// replaces it, so it is not kept.
func (s *Consumer) Activation() *ir.Value { return s.Node.Input(1 - s.Use.Index) }

// view is the shape of the base as s sees it: its operand, turned back.
func (s *Consumer) BaseShape() []int64 {
	if s.Transposed {
		return []int64{s.Shape[1], s.Shape[0]}
	}
	return s.Shape
}

// channelAxis is the axis of the view that the product keeps: each of its indices
// gets a scale. It is -1 for vectors, which have one scale.
func (s *Consumer) ChannelAxis() int {
	rank := len(s.Shape)
	axis := rank - 1 // right: columns
	switch {
	case rank == 1:
		return -1
	case s.Side == Lookup:
		return 0
	case s.Side == Left:
		axis = rank - 2
	}
	if s.Transposed {
		return 1 - axis
	}
	return axis
}

// mirror turns W·X into the transpose of Xᵀ·Wᵀ. It needs the rank of X; a vector is
// its own transpose.
func (s *Consumer) Mirror() {
	s.Side, s.Mirrored, s.Transposed = Right, true, !s.Transposed
	s.Shape = []int64{s.Shape[1], s.Shape[0]}
}
