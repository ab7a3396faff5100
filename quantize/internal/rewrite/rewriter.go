package rewrite

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A Rewriter replaces float products by quantized ones. Activations are quantized once for all products that read them.
type Rewriter struct {
	step                 *pass.Step
	quantizedActivations map[scopedValue][]*ir.Value // DynamicQuantizeLinear's outputs by activation
	casts                map[scopedValue]*ir.Value   // 16-bit activations cast to float32
	reshaped             map[scopedValue]*ir.Value   // scales and zero points reshaped
}

// New returns a Rewriter of the nodes of a step's model.
func New(s *pass.Step) *Rewriter {
	return &Rewriter{step: s, quantizedActivations: map[scopedValue][]*ir.Value{}, casts: map[scopedValue]*ir.Value{},
		reshaped: map[scopedValue]*ir.Value{}}
}

// A scopedValue is a value in a graph: nodes of one graph are not visible in others.
type scopedValue struct {
	g *ir.Graph
	v *ir.Value
}

// Replace replaces the output of a consumer by y, and drops what only the consumer has read.
func (r *Rewriter) Replace(s *weights.Consumer, y *ir.Value) {
	inputs := slices.Clone(s.Node.Inputs())
	s.Node.ReplaceBy(y)
	// After the replacement: they are constants without consumers now, or nodes that computed them.
	for _, v := range inputs {
		if v != nil {
			v.Drop()
		}
	}
}

// ReplaceLookup replaces a lookup in a table of type elem by its rows as float32: in that type, whose values the table
// has, and in the one that is read.
func (r *Rewriter) ReplaceLookup(s *weights.Consumer, rows *ir.Value, elem ir.DType) {
	have := ir.Float
	for _, to := range []ir.DType{elem, s.Elem} {
		if to != have {
			rows, have = r.Cast(s.Node.Graph(), s.Node, rows, to), to
		}
	}
	r.Replace(s, rows)
}

// Cast returns v as another type, before the node at.
func (r *Rewriter) Cast(g *ir.Graph, at *ir.Node, x *ir.Value, to ir.DType) *ir.Value {
	return g.Insert(at, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(to)))
}

// AddBias adds Gemm's C, times beta, by Add or Sum.
func (r *Rewriter) AddBias(s *weights.Consumer, y *ir.Value, add string) *ir.Value {
	b, beta := s.Node.Input(2), s.Node.Float("beta", 1)
	if !s.Node.Op.Is("Gemm") || b == nil || beta == 0 {
		return y
	}
	g, at := s.Node.Graph(), s.Node
	if beta != 1 {
		b = g.Insert(at, "Mul", []*ir.Value{b, r.Scalar(s, beta)})
	}
	return g.Insert(at, add, []*ir.Value{y, b})
}

// Scalar is a constant of the type of s; runtimes fold the Cast.
func (r *Rewriter) Scalar(s *weights.Consumer, f float32) *ir.Value {
	g := s.Node.Graph()
	v := r.step.Const(g, ir.Float, nil, ir.Floats(f))
	if s.Elem != ir.Float {
		v = r.Cast(g, s.Node, v, s.Elem)
	}
	return v
}
