package rewrite

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// gatherBytes looks up rows of packed bytes, of which MatMulNBits may read the same tensors, and unpacks and
// dequantizes the rows.
func (st *Blockwise) gatherBytes(r *Rewriter, s *weights.Consumer) *ir.Value {
	g, at, b := s.Node.Graph(), s.Node, st.Layout
	wide := b.NumBlocks() * int64(b.Spec.Block)
	var x *ir.Value
	elem := ir.Float
	if st.hasGatherOperator(r) {
		x, elem = st.gatherBlockQuantized(r, s), st.ScaleValue.Const.DType
	} else {
		x = st.gatherPacked(r, s)
	}
	// The last block of a row is padded as MatMulNBits requires.
	if wide != b.Rows {
		x = r.columns(g, at, x, b.Rows)
	}
	if s.Elem != elem {
		x = r.Cast(g, at, x, s.Elem)
	}
	return x
}

// hasGatherOperator reports whether GatherBlockQuantized reads the tensors: its blocks are powers of two from 16 on.
func (st *Blockwise) hasGatherOperator(r *Rewriter) bool {
	size, need := st.Layout.Spec.Block, pass.GatherNBits
	if st.Layout.Bits == 2 {
		need = pass.GatherNBits2
	}
	return size >= 16 && size&(size-1) == 0 && r.step.Env.Target.Can(need)
}

// gatherBlockQuantized is ONNX Runtime's operator, whose data are a matrix: runtimes fold the Reshape.
func (st *Blockwise) gatherBlockQuantized(r *Rewriter, s *weights.Consumer) *ir.Value {
	g, at, b := s.Node.Graph(), s.Node, st.Layout
	importDomain(g, pass.MicrosoftDomain)
	rows := r.reshapeTo(g, at, st.Quantized, b.Cols, -1)
	in := []*ir.Value{rows, s.Activation(), st.ScaleValue}
	if st.ZeroPointValue != nil {
		in = append(in, st.ZeroPointValue)
	}
	attrs := []*ir.Attr{ir.IntAttr("bits", int64(b.Bits)), ir.IntAttr("block_size", int64(b.Spec.Block)),
		ir.IntAttr("gather_axis", 0), ir.IntAttr("quantize_axis", 1)}
	x := g.Insert(at, "GatherBlockQuantized", in, attrs...)
	x.Producer().Op.Domain = pass.MicrosoftDomain
	return x
}

// gatherPacked is the lookup in operators of ONNX: bytes of rows, unpacked after Gather, so that runtimes fold nothing.
func (st *Blockwise) gatherPacked(r *Rewriter, s *weights.Consumer) *ir.Value {
	g, at, b := s.Node.Graph(), s.Node, st.Layout
	rows := func(v *ir.Value) *ir.Value { return g.Insert(at, "Gather", []*ir.Value{v, s.Activation()}) }
	values := func(v *ir.Value) *ir.Value {
		x := rows(v)
		if b.Bits < 8 {
			x = r.unpack(g, at, st, x, 0, ir.Uint8) // rows are whole bytes
		}
		return r.Cast(g, at, x, ir.Float)
	}
	var zero *ir.Value
	if st.ZeroPointValue != nil {
		stored := st.ZeroPointValue.Const.Shape[1] * int64(8/b.Bits)
		zero = values(st.ZeroPointValue)
		// Rows of zero points are whole bytes, of which the last one may have padding.
		if stored != b.NumBlocks() {
			zero = r.reshapeTo(g, at, zero, -1, stored)
			zero = r.columns(g, at, zero, b.NumBlocks())
		}
	}
	blocks := st.blockShape()
	x := r.dequantizeBlocks(g, at, st, r.reshapeTo(g, at, values(st.Quantized), blocks.values...), zero,
		rows(st.ScaleValue), blocks.scales)
	width := r.step.Const(g, ir.Int64, []int64{1}, ir.Ints(b.NumBlocks()*int64(b.Spec.Block)))
	shape := g.Insert(at, "Concat", []*ir.Value{g.Insert(at, "Shape", []*ir.Value{s.Activation()}), width},
		ir.IntAttr("axis", 0))
	return g.Insert(at, "Reshape", []*ir.Value{x, shape})
}

// columns is the first n elements along the last axis of x.
func (r *Rewriter) columns(g *ir.Graph, at *ir.Node, x *ir.Value, n int64) *ir.Value {
	one := func(n int64) *ir.Value { return r.step.Const(g, ir.Int64, []int64{1}, ir.Ints(n)) }
	return g.Insert(at, "Slice", []*ir.Value{x, one(0), one(n), one(-1)})
}
