package rewrite

import (
	"bytes"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// CastMul is (q - zero point) · scale in nodes that runtimes fold.
func (r *Rewriter) CastMul(st Stored) *ir.Value { return st.castMul(r) }

func (st *PerChannel) castMul(r *Rewriter) *ir.Value {
	g, at := st.Graph, st.Graph.First()
	x := r.Cast(g, at, st.Quantized, ir.Float)
	if z := r.zeroPoint(st); z != nil {
		x = g.Insert(at, "Sub", []*ir.Value{x, r.Cast(g, at, z, ir.Float)})
	}
	x = g.Insert(at, "Mul", []*ir.Value{x, st.ScaleValue})
	if st.Weight.DType != ir.Float {
		x = r.Cast(g, at, x, st.Weight.DType)
	}
	return x
}

// DequantizeLinear inserts DequantizeLinear before a product. ONNX Runtime fuses both into MatMulNBits, unless it has
// fused Gemm and an activation, or MatMul, Add and an activation, before; it would then dequantize in every run. So
// Gemm becomes MatMul and Sum, and a following Add becomes Sum.
func (r *Rewriter) DequantizeLinear(s *weights.Consumer, st Stored) {
	g, at, x := s.Node.Graph(), s.Node, s.Activation()
	w := st.dequantize(r, s.Transposed)
	// MatMul keeps its node: only the weight is another one.
	if !at.Op.Is("Gemm") {
		old := at.Input(s.Use.Index)
		at.SetInput(s.Use.Index, w)
		old.Drop()
		sumAfter(at)
		return
	}
	if s.TransposesActivation() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	y := g.Insert(at, "MatMul", []*ir.Value{x, w})
	if alpha := at.Float("alpha", 1); alpha != 1 {
		y = g.Insert(at, "Mul", []*ir.Value{y, r.Scalar(s, alpha)})
	}
	r.Replace(s, r.AddBias(s, y, "Sum"))
}

// sumAfter makes a Sum of the Add that consumes a product of matrices.
func sumAfter(n *ir.Node) {
	rank, ok := opset.Rank(n.Input(0))
	uses := n.Outputs[0].Uses()
	if ok && rank == 2 && len(uses) == 1 && uses[0].Node != nil && uses[0].Node.Op.Is("Add") {
		uses[0].Node.Op.Type = "Sum"
	}
}

// dequantize is the float weight in one orientation, inserted at the start of the graph with the quantized weight.
func (st *PerChannel) dequantize(r *Rewriter, transposed bool) *ir.Value {
	in := []*ir.Value{r.orient(st, transposed), r.reshape(st, st.ScaleValue, false), r.zeroPoints(st)}
	if in[2] == nil {
		in = in[:2]
	}
	var attrs []*ir.Attr
	if st.Axis >= 0 {
		axis := int64(st.Axis)
		if transposed {
			axis = 1 - axis
		}
		attrs = append(attrs, ir.IntAttr("axis", axis))
	}
	return st.Graph.Insert(firstAfter(st.Graph, in), "DequantizeLinear", in, attrs...)
}

// firstAfter is the first node of g after all producers of vs.
func firstAfter(g *ir.Graph, vs []*ir.Value) *ir.Node {
	makers := map[*ir.Node]bool{}
	for _, v := range vs {
		if n := v.Producer(); n != nil && n.Graph() == g {
			makers[n] = true
		}
	}
	for n := range g.Nodes() {
		if len(makers) == 0 {
			return n
		}
		delete(makers, n)
	}
	return nil
}

// zeroPoints is the zero points in the shape of the scales, as DequantizeLinear requires. They are written out, and not
// shared with other weights, although zeros are optional: when ONNX Runtime converts int8 weights to uint8
// (session.x64quantprecision, for CPUs without VNNI) it supports no others, and fails when two weights share them.
func (r *Rewriter) zeroPoints(st *PerChannel) *ir.Value {
	if st.ZeroPointValue != nil || st.Axis < 0 {
		return r.flatZeroPoint(st, r.zeroPoint(st))
	}
	n := st.Layout.NumScales()
	quantized := ir.Spec{DType: st.Spec.DType(), Shape: []int64{n}}
	st.ExplicitZeroPoint = st.Graph.AddConst("z",
		&ir.Tensor{Spec: quantized, Source: ir.Mem(bytes.Repeat([]byte{byte(st.Spec.ZeroPoint())}, int(n)))})
	return st.ExplicitZeroPoint
}
