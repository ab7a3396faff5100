package rewrite

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// Gather replaces a lookup in a float table by one in quantized values and scales: DequantizeLinear before it would
// expand the whole table in every run.
func (r *Rewriter) Gather(s *weights.Consumer, st Stored) { st.gather(r, s) }

func (st *PerChannel) gather(r *Rewriter, s *weights.Consumer) {
	g, at := s.Node.Graph(), s.Node
	rows := func(v *ir.Value) *ir.Value {
		if v.Const != nil && len(v.Const.Shape) == 0 {
			return v
		}
		// A scale for each row is looked up with it; scales along the row belong to all rows.
		byRow := st.Axis == s.ChannelAxis()
		if v = r.reshape(st, v, byRow); !byRow {
			return v
		}
		return g.Insert(at, "Gather", []*ir.Value{v, s.Activation()})
	}
	x := r.Cast(g, at, g.Insert(at, "Gather", []*ir.Value{r.orient(st, s.Transposed), s.Activation()}), ir.Float)
	if z := r.zeroPoint(st); z != nil {
		x = g.Insert(at, "Sub", []*ir.Value{x, r.Cast(g, at, rows(z), ir.Float)})
	}
	x = g.Insert(at, "Mul", []*ir.Value{x, rows(st.ScaleValue)})
	if s.Elem != ir.Float {
		x = r.Cast(g, at, x, s.Elem)
	}
	r.Replace(s, x)
}

// MatMulInteger replaces a float product by an integer one. Mul(y, Mul(xs, ws)) is the order that ONNX Runtime fuses.
func (r *Rewriter) MatMulInteger(s *weights.Consumer, st *PerChannel) {
	g, at := s.Node.Graph(), s.Node
	q := r.quantized(g, at, r.float32Activation(s, st))
	quantized, zero := r.orient(st, s.Transposed), r.flatZeroPoint(st, r.zeroPoint(st))
	in := []*ir.Value{q[0], quantized, q[2], zero}
	// MatMulInteger has A, B and their zero points in this order; the activation is uint8 on either side.
	if s.Side == weights.Left {
		in = []*ir.Value{quantized, q[0], zero, q[2]}
	}
	if in[3] == nil {
		in = in[:3]
	}
	y := r.Cast(g, at, g.Insert(at, "MatMulInteger", in), ir.Float)
	y = g.Insert(at, "Mul", []*ir.Value{y, g.Insert(at, "Mul", []*ir.Value{q[1], r.outputScale(s, st)})})
	// (W·X)ᵀ was computed.
	if s.Mirrored && s.ActivationRank > 1 {
		y = r.swapLastAxes(g, at, y, s.ActivationRank)
	}
	if s.Elem != ir.Float {
		y = r.Cast(g, at, y, s.Elem)
	}
	r.Replace(s, r.AddBias(s, y, "Add"))
}

// CastProduct replaces a product by one with the quantized values as floats, whose columns scales multiply. ONNX
// Runtime folds the Cast, and keeps what folded nodes compute even if only other folded nodes read it, so a Mul before
// the product would hold the weight twice.
func (r *Rewriter) CastProduct(s *weights.Consumer, st *PerChannel) {
	g, at, x := s.Node.Graph(), s.Node, s.Activation()
	if s.TransposesActivation() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	y := g.Insert(at, "MatMul", []*ir.Value{x, r.castOnce(g, r.orient(st, s.Transposed))})
	y = g.Insert(at, "Mul", []*ir.Value{y, r.outputScale(s, st)})
	r.Replace(s, r.AddBias(s, y, "Add"))
}

// ScaledProduct replaces a product with w, the scales of whose channels follow it, as in CastProduct: the weight is the
// operand as it is, and Gemm keeps its attributes.
func (r *Rewriter) ScaledProduct(s *weights.Consumer, w, scale *ir.Value) {
	g, at := s.Node.Graph(), s.Node
	op, in, attrs := "MatMul", []*ir.Value{s.Activation(), w}, []*ir.Attr(nil)
	if s.Node.Op.Is("Gemm") {
		op = "Gemm"
		attrs = []*ir.Attr{ir.IntAttr("transA", s.Node.Int("transA", 0)), ir.IntAttr("transB", s.Node.Int("transB", 0)),
			ir.FloatAttr("alpha", s.Node.Float("alpha", 1))}
	}
	y := g.Insert(at, op, in, attrs...)
	y = g.Insert(at, "Mul", []*ir.Value{y, r.reshapeTo(g, g.First(), scale, -1)})
	r.Replace(s, r.AddBias(s, y, "Add"))
}

// castOnce is the constant expression q as floats, once for all products of a graph.
func (r *Rewriter) castOnce(g *ir.Graph, q *ir.Value) *ir.Value {
	k := scopedValue{g, q}
	if r.casts[k] == nil {
		r.casts[k] = r.Cast(g, firstAfter(g, []*ir.Value{q}), q, ir.Float)
	}
	return r.casts[k]
}

// float32Activation is the float32 activation to quantize at run time. Scales along the reduction axis multiply it, as
// they do not factor out of the product.
func (r *Rewriter) float32Activation(s *weights.Consumer, st *PerChannel) *ir.Value {
	g, at, x := s.Node.Graph(), s.Node, s.Activation()
	if s.Elem != ir.Float {
		x = r.castToFloat32(g, at, x)
	}
	if s.TransposesActivation() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	if s.Mirrored && s.ActivationRank > 1 {
		x = r.swapLastAxes(g, at, x, s.ActivationRank)
	}
	if st.scalesAlongReduction(s) {
		x = g.Insert(at, "Mul", []*ir.Value{x, r.reshape(st, st.ScaleValue, s.Side == weights.Left)})
	}
	return x
}

// quantized inserts DynamicQuantizeLinear before the first product of the activation.
func (r *Rewriter) quantized(g *ir.Graph, at *ir.Node, x *ir.Value) []*ir.Value {
	k := scopedValue{g, x}
	if r.quantizedActivations[k] == nil {
		r.quantizedActivations[k] = g.InsertN(at, "DynamicQuantizeLinear", 3, []*ir.Value{x})
	}
	return r.quantizedActivations[k]
}

// castToFloat32 casts a 16-bit activation to float32, once for all products.
func (r *Rewriter) castToFloat32(g *ir.Graph, at *ir.Node, x *ir.Value) *ir.Value {
	k := scopedValue{g, x}
	if r.casts[k] == nil {
		r.casts[k] = r.Cast(g, at, x, ir.Float)
	}
	return r.casts[k]
}

// swapLastAxes transposes the last two axes of x.
func (r *Rewriter) swapLastAxes(g *ir.Graph, at *ir.Node, x *ir.Value, rank int) *ir.Value {
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	return g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", perm...))
}

// orient is the quantized weight in one orientation. The Transpose is inserted once for all consumers; runtimes fold
// it.
func (r *Rewriter) orient(st *PerChannel, transposed bool) *ir.Value {
	if transposed == st.Transpose {
		return st.Quantized
	}
	if st.transposed == nil {
		g := st.Graph
		st.transposed = g.Insert(g.First(), "Transpose", []*ir.Value{st.Quantized}, ir.IntsAttr("perm", 1, 0))
	}
	return st.transposed
}

// zeroPoint is the zero point, nil for 0, which operators assume.
func (r *Rewriter) zeroPoint(st *PerChannel) *ir.Value {
	switch {
	case st.ZeroPointValue != nil:
		return st.ZeroPointValue
	case st.Spec.ZeroPoint() != 0:
		return r.step.Const(st.Graph, st.Spec.DType(), nil, []byte{byte(st.Spec.ZeroPoint())})
	}
	return nil
}

// outputScale is the scale of the product: the weight's, where it is along an output axis, times Gemm's alpha.
func (r *Rewriter) outputScale(s *weights.Consumer, st *PerChannel) *ir.Value {
	g := s.Node.Graph()
	alpha := s.Node.Float("alpha", 1)
	if !s.Node.Op.Is("Gemm") {
		alpha = 1
	}
	if st.scalesAlongReduction(s) {
		// ONNX Runtime would remove a scalar 1, and then not fuse.
		return r.step.Const(g, ir.Float, []int64{1}, ir.Floats(alpha))
	}
	w := r.reshape(st, st.ScaleValue, s.Side == weights.Left)
	if alpha == 1 {
		return w
	}
	return g.Insert(s.Node, "Mul", []*ir.Value{w, r.step.Const(g, ir.Float, nil, ir.Floats(alpha))})
}

// flatZeroPoint is zero points in the shape that MatMulInteger requires: a vector for a matrix.
func (r *Rewriter) flatZeroPoint(st *PerChannel, v *ir.Value) *ir.Value {
	if v == nil || v.Const != nil && len(v.Const.Shape) == 0 {
		return v
	}
	return r.reshape(st, v, false)
}

// reshape is a matrix's scales or zero points as a column or as a vector; those of batches and single ones fit as they
// are.
func (r *Rewriter) reshape(st *PerChannel, v *ir.Value, column bool) *ir.Value {
	shape := []int64{st.Layout.NumScales()}
	if column {
		shape = append(shape, 1)
	}
	if st.Axis < 0 || len(st.Shape) > 2 || len(shape) == len(st.ScaleShape) {
		return v
	}
	k := scopedValue{st.Graph, v}
	if r.reshaped[k] == nil {
		g := k.g
		to := r.step.Const(g, ir.Int64, []int64{int64(len(shape))}, ir.Ints(shape...))
		r.reshaped[k] = g.Insert(g.First(), "Reshape", []*ir.Value{v, to})
	}
	return r.reshaped[k]
}
