package rewrite

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// dequantize is the float matrix K×N, inserted at the start of the graph with the quantized weight. ONNX Runtime folds the
// Transposes of column-major quantized weights.
func (st *Blockwise) dequantize(r *Rewriter, _ bool) *ir.Value {
	in := []*ir.Value{st.Quantized, st.ScaleValue}
	if st.ZeroPointValue != nil {
		in = append(in, st.ZeroPointValue)
	}
	if !st.Layout.RowMajor() {
		for i, v := range in {
			in[i] = r.asRowMajor(st, v)
		}
	}
	attrs := []*ir.Attr{ir.IntAttr("axis", 1)}
	if st.Layout.NumBlocks() > 1 {
		attrs = []*ir.Attr{ir.IntAttr("axis", 0), ir.IntAttr("block_size", int64(st.Layout.Spec.Block))}
	}
	return st.Graph.Insert(firstAfter(st.Graph, in), "DequantizeLinear", in, attrs...)
}

// asRowMajor is a column-major constant as DequantizeLinear requires it: transposed, or a vector for one block per column.
func (r *Rewriter) asRowMajor(st *Blockwise, v *ir.Value) *ir.Value {
	g := st.Graph
	if v.Const.Shape[1] == 1 {
		to := r.step.Const(g, ir.Int64, []int64{1}, ir.Ints(st.Layout.Cols))
		return g.Insert(g.First(), "Reshape", []*ir.Value{v, to})
	}
	return g.Insert(g.First(), "Transpose", []*ir.Value{v}, ir.IntsAttr("perm", 1, 0))
}

// gather looks up rows of quantized values and of their scales. Gather does not support types below a byte: runtimes fold the
// Cast.
func (st *Blockwise) gather(r *Rewriter, s *weights.Consumer) {
	g, at := s.Node.Graph(), s.Node
	rows := func(v *ir.Value) *ir.Value { return g.Insert(at, "Gather", []*ir.Value{v, s.Activation()}) }
	quantized := rows(r.castToBytes(st, st.Quantized))
	var zero *ir.Value
	if st.ZeroPointValue != nil {
		zero = rows(r.castToBytes(st, st.ZeroPointValue))
	}
	shape := g.Insert(at, "Shape", []*ir.Value{quantized})
	x := g.Insert(at, "Reshape", []*ir.Value{r.dequantizeColumns(g, at, st, quantized, zero, rows(st.ScaleValue)), shape})
	if s.Elem != ir.Float {
		x = r.Cast(g, at, x, s.Elem)
	}
	r.Replace(s, x)
}

// castToBytes is quantized values, or zero points, one in a byte.
func (r *Rewriter) castToBytes(st *Blockwise, v *ir.Value) *ir.Value {
	if st.Layout.Bits == 8 {
		return v
	}
	k := scopedValue{st.Graph, v}
	if r.casts[k] == nil {
		to := ir.Uint8
		if st.Layout.Spec.Low < 0 {
			to = ir.Int8
		}
		r.casts[k] = r.Cast(st.Graph, st.Graph.First(), v, to)
	}
	return r.casts[k]
}

// dequantizeColumns is (q - zero point) · scale of some columns, as blocks × block size.
func (r *Rewriter) dequantizeColumns(g *ir.Graph, at *ir.Node, st *Blockwise, quantized, zero, scale *ir.Value) *ir.Value {
	n, block := st.Layout.NumBlocks(), int64(st.Layout.Spec.Block)
	blocks := func(v *ir.Value, size int64) *ir.Value {
		to := r.step.Const(g, ir.Int64, []int64{3}, ir.Ints(-1, n, size))
		return g.Insert(at, "Reshape", []*ir.Value{v, to})
	}
	x := blocks(r.Cast(g, at, quantized, ir.Float), block)
	if zero != nil {
		x = g.Insert(at, "Sub", []*ir.Value{x, blocks(r.Cast(g, at, zero, ir.Float), 1)})
	}
	if st.Layout.Spec.Half {
		scale = r.Cast(g, at, scale, ir.Float)
	}
	return g.Insert(at, "Mul", []*ir.Value{x, blocks(scale, 1)})
}

// castMul is the whole weight in nodes that runtimes fold.
func (st *Blockwise) castMul(r *Rewriter) *ir.Value {
	g, at := st.Graph, st.Graph.First()
	quantized := st.Quantized
	if st.Layout.BytePacked() {
		quantized = r.unpack(g, at, st)
	}
	shape := r.step.Const(g, ir.Int64, []int64{int64(len(st.Weight.Shape))}, ir.Ints(st.Weight.Shape...))
	x := g.Insert(at, "Reshape", []*ir.Value{r.dequantizeColumns(g, at, st, quantized, st.ZeroPointValue, st.ScaleValue), shape})
	if st.Weight.DType != ir.Float {
		x = r.Cast(g, at, x, st.Weight.DType)
	}
	return x
}

// unpack unpacks bytes by arithmetic that every opset supports: floats hold bytes exactly.
func (r *Rewriter) unpack(g *ir.Graph, at *ir.Node, st *Blockwise) *ir.Value {
	number := func(f float32) *ir.Value { return r.step.Const(g, ir.Float, nil, ir.Floats(f)) }
	column := r.step.Const(g, ir.Int64, []int64{2}, ir.Ints(-1, 1))
	rest := g.Insert(at, "Reshape", []*ir.Value{r.Cast(g, at, st.Quantized, ir.Float), column})
	per := 8 / st.Layout.Bits
	quantized := make([]*ir.Value, per)
	for i := per - 1; i > 0; i-- {
		unit := float32(int(1) << (i * st.Layout.Bits))
		quantized[i] = g.Insert(at, "Floor", []*ir.Value{g.Insert(at, "Mul", []*ir.Value{rest, number(1 / unit)})})
		rest = g.Insert(at, "Sub", []*ir.Value{rest, g.Insert(at, "Mul", []*ir.Value{quantized[i], number(unit)})})
	}
	quantized[0] = rest
	return g.Insert(at, "Concat", quantized, ir.IntAttr("axis", 1))
}
