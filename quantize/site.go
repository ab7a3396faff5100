package quantize

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A side says on which side of a product the constant stands.
type side uint8

const (
	right side = iota
	left
	gather // rows are looked up, nothing is multiplied
)

// A site is one use of a constant by an operator whose integer form is known.
type site struct {
	node       *ir.Node
	side       side
	shape      []int64 // of the operand, after Gemm's transposition
	transposed bool    // the operand is the transpose of the base, Gemm's attribute included
	elem       ir.DType
	use        ir.Use // where the operand enters
	trouble    string
	rank       int  // of act(), where it is needed and known
	mirrored   bool // written as the transpose of a product with the constant on the right
}

// A weight is a constant and all its uses.
type weight struct {
	base  *ir.Value
	sites []*site
	other string // a use that has no integer form, or ""
}

// sites finds the products with a constant factor, and Gathers from one, by constant,
// in the order of nodes.
func sites(c *pass.Context, embeddings bool) []*weight {
	var ws []*weight
	by := map[*ir.Value]*weight{}
	for n := range c.Model.Nodes() {
		for _, s := range nodeSites(c, n, embeddings) {
			o := c.Trace(n.Input(s.use.Index))
			w := by[o.Base]
			if w == nil {
				w = &weight{base: o.Base}
				by[o.Base] = w
				ws = append(ws, w)
			}
			w.sites = append(w.sites, s)
		}
	}
	for _, w := range ws {
		w.other = w.uncovered()
	}
	return ws
}

// uncovered names a use of w's constant that is no site.
func (w *weight) uncovered() string {
	for _, l := range pass.Leaves(w.base) {
		if l.Node == nil {
			return "a graph output"
		}
		if !slices.ContainsFunc(w.sites, func(s *site) bool { return s.use.Node == l.Node && s.use.Index == l.Index }) {
			return pass.Labels([]*ir.Node{l.Node})[0]
		}
	}
	return ""
}

func (w *weight) nodes() []*ir.Node {
	var ns []*ir.Node
	for _, s := range w.sites {
		if !slices.Contains(ns, s.node) {
			ns = append(ns, s.node)
		}
	}
	return ns
}

// trouble is the first reason why a site cannot be rewritten.
func (w *weight) trouble() string {
	for _, s := range w.sites {
		if s.trouble != "" {
			return s.trouble
		}
	}
	return ""
}

func nodeSites(c *pass.Context, n *ir.Node, embeddings bool) []*site {
	switch {
	case n.Op.Is("MatMul") && len(n.Inputs()) == 2:
		return matmulSite(c, n, false, false)
	case n.Op.Is("Gemm") && len(n.Inputs()) >= 2:
		return matmulSite(c, n, n.Int("transA", 0) != 0, n.Int("transB", 0) != 0)
	case n.Op.Is("Gather") && len(n.Inputs()) == 2 && embeddings:
		return gatherSite(c, n)
	}
	return nil
}

func matmulSite(c *pass.Context, n *ir.Node, transA, transB bool) []*site {
	a, b := c.Trace(n.Input(0)), c.Trace(n.Input(1))
	switch {
	case b != nil && a == nil:
		return newSite(n, right, 1, b, transB)
	case a != nil && b == nil:
		return newSite(n, left, 0, a, transA)
	}
	return nil // two activations, or a product of constants
}

func gatherSite(c *pass.Context, n *ir.Node) []*site {
	o := c.Trace(n.Input(0))
	if o == nil || c.Trace(n.Input(1)) != nil {
		return nil
	}
	ss := newSite(n, gather, 0, o, false)
	for _, s := range ss {
		switch axis := n.Int("axis", 0); {
		case s.trouble != "":
		case axis != 0:
			s.trouble = fmt.Sprintf("%s gathers along axis %d; only rows have a scale of their own", n.Label(), axis)
		case s.transposed || !slices.Equal(o.Shape, o.Base.Const.Shape):
			s.trouble = fmt.Sprintf("%s gathers from a transposed or reshaped table", n.Label())
		case len(s.shape) < 2:
			s.trouble = fmt.Sprintf("%s gathers single numbers", n.Label())
		}
	}
	return ss
}

func newSite(n *ir.Node, sd side, index int, o *pass.Operand, transpose bool) []*site {
	if !o.Base.Const.DType.IsFloat() {
		return nil
	}
	s := &site{node: n, side: sd, elem: o.Elem, shape: o.Shape, transposed: o.Transposed, use: ir.Use{Node: n, Index: index}, trouble: o.Trouble}
	if transpose && len(s.shape) == 2 {
		s.shape, s.transposed = []int64{s.shape[1], s.shape[0]}, !s.transposed
	}
	switch name := pass.FromCaller(n); {
	case s.trouble != "":
	case name != "":
		s.trouble = fmt.Sprintf("%s gets its attribute %s from the function's caller", n.Label(), name)
	case o.Elem == ir.Double || o.Base.Const.DType == ir.Double:
		s.trouble = "integer kernels work beside float32 and 16-bit floats, not float64"
	case len(s.shape) == 0:
		s.trouble = "it is a scalar"
	}
	return []*site{s}
}

// act is the other factor, or Gather's indices. Rewriting the node that makes it
// replaces it, so it is not kept.
func (s *site) act() *ir.Value { return s.node.Input(1 - s.use.Index) }

// view is the shape of the base as s sees it: its operand, turned back.
func (s *site) view() []int64 {
	if s.transposed {
		return []int64{s.shape[1], s.shape[0]}
	}
	return s.shape
}

// channelAxis is the axis of the view that the product keeps: each of its indices
// gets a scale. It is -1 for vectors, which have one scale.
func (s *site) channelAxis() int {
	rank := len(s.shape)
	axis := rank - 1 // right: columns
	switch {
	case rank == 1:
		return -1
	case s.side == gather:
		return 0
	case s.side == left:
		axis = rank - 2
	}
	if s.transposed {
		return 1 - axis
	}
	return axis
}

// mirror turns W·X into the transpose of Xᵀ·Wᵀ. It needs the rank of X; a vector is
// its own transpose.
func (s *site) mirror() {
	s.side, s.mirrored, s.transposed = right, true, !s.transposed
	s.shape = []int64{s.shape[1], s.shape[0]}
}
