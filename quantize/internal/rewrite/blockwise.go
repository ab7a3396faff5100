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
	if st.Layout.ForNBits {
		r.Replace(s, st.gatherBytes(r, s))
		return
	}
	rows := func(v *ir.Value) *ir.Value { return g.Insert(at, "Gather", []*ir.Value{v, s.Activation()}) }
	quantized := rows(r.castToBytes(st, st.Quantized))
	var zero *ir.Value
	if st.ZeroPointValue != nil {
		zero = r.Cast(g, at, rows(r.castToBytes(st, st.ZeroPointValue)), ir.Float)
	}
	shape := g.Insert(at, "Shape", []*ir.Value{quantized})
	x := g.Insert(at, "Reshape", []*ir.Value{r.dequantizeBlocks(g, at, st, r.Cast(g, at, quantized, ir.Float), zero, rows(st.ScaleValue)), shape})
	if s.Elem != ir.Float {
		x = r.Cast(g, at, x, s.Elem)
	}
	r.Replace(s, x)
}

// castToBytes is quantized values, or zero points, one in a byte.
func (r *Rewriter) castToBytes(st *Blockwise, v *ir.Value) *ir.Value {
	packed := st.packed(v)
	if st.Layout.Bits == 8 || st.Layout.BytePacked() && !packed {
		return v
	}
	k, g := scopedValue{st.Graph, v}, st.Graph
	if r.casts[k] != nil {
		return r.casts[k]
	}
	to, at := ir.Uint8, g.First()
	if st.Layout.Spec.Low < 0 {
		to = ir.Int8
	}
	if packed {
		v = g.Insert(at, "Reshape", []*ir.Value{r.unpack(g, at, st, v), r.step.Const(g, ir.Int64, []int64{2}, ir.Ints(st.Layout.Cols, -1))})
	}
	r.casts[k] = r.Cast(g, at, v, to)
	return r.casts[k]
}

// packed reports whether bytes of v hold several quantized values or zero points.
func (st *Blockwise) packed(v *ir.Value) bool {
	return st.Layout.BytePacked() && (v == st.Quantized || st.Layout.ZeroPointsPacked())
}

// castToFloat is quantized values, or zero points, as floats.
func (r *Rewriter) castToFloat(g *ir.Graph, at *ir.Node, st *Blockwise, v *ir.Value) *ir.Value {
	if st.packed(v) {
		v = r.unpack(g, at, st, v)
	}
	return r.Cast(g, at, v, ir.Float)
}

// dequantizeBlocks is (q - zero point) · scale of quantized values and zero points as floats: of some columns, as columns × blocks × block size, or of a
// row-major matrix, as blocks × block size × columns.
func (r *Rewriter) dequantizeBlocks(g *ir.Graph, at *ir.Node, st *Blockwise, quantized, zero, scale *ir.Value) *ir.Value {
	n, block := st.Layout.NumBlocks(), int64(st.Layout.Spec.Block)
	blocks := func(v *ir.Value, size int64) *ir.Value {
		shape := ir.Ints(-1, n, size)
		if st.Layout.RowMajor() {
			shape = ir.Ints(n, size, -1)
		}
		return g.Insert(at, "Reshape", []*ir.Value{v, r.step.Const(g, ir.Int64, []int64{3}, shape)})
	}
	x := blocks(quantized, block)
	switch z := st.Layout.ImpliedZeroPoint(); {
	case zero != nil:
		x = g.Insert(at, "Sub", []*ir.Value{x, blocks(zero, 1)})
	case z != 0:
		x = g.Insert(at, "Sub", []*ir.Value{x, r.step.Const(g, ir.Float, nil, ir.Floats(float32(z)))})
	}
	if st.Layout.Spec.Half {
		scale = r.Cast(g, at, scale, ir.Float)
	}
	return g.Insert(at, "Mul", []*ir.Value{x, blocks(scale, 1)})
}

// castMul is the whole weight in nodes that runtimes fold.
func (st *Blockwise) castMul(r *Rewriter) *ir.Value {
	g, at := st.Graph, st.Graph.First()
	var zero *ir.Value
	if st.ZeroPointValue != nil {
		zero = r.castToFloat(g, at, st, st.ZeroPointValue)
	}
	shape := r.step.Const(g, ir.Int64, []int64{int64(len(st.Weight.Shape))}, ir.Ints(st.Weight.Shape...))
	x := g.Insert(at, "Reshape", []*ir.Value{r.dequantizeBlocks(g, at, st, r.castToFloat(g, at, st, st.Quantized), zero, st.ScaleValue), shape})
	if st.Weight.DType != ir.Float {
		x = r.Cast(g, at, x, st.Weight.DType)
	}
	return x
}

// unpack is the values of packed bytes as integers, the lowest bits of a byte first.
func (r *Rewriter) unpack(g *ir.Graph, at *ir.Node, st *Blockwise, packed *ir.Value) *ir.Value {
	per, count := 8/st.Layout.Bits, st.Layout.Rows*st.Layout.Cols
	if packed != st.Quantized {
		count = st.Layout.NumBlocks() * st.Layout.Cols
	}
	units := make([]int32, per)
	for i := range units {
		units[i] = 1 << (i * st.Layout.Bits)
	}
	number := func(shape []int64, xs ...int32) *ir.Value { return r.step.Const(g, ir.Int32, shape, ir.Int32s(xs...)) }
	shape := func(dims ...int64) *ir.Value {
		return r.step.Const(g, ir.Int64, []int64{int64(len(dims))}, ir.Ints(dims...))
	}
	x := g.Insert(at, "Reshape", []*ir.Value{r.Cast(g, at, packed, ir.Int32), shape(-1, 1)})
	x = g.Insert(at, "Div", []*ir.Value{x, number([]int64{int64(per)}, units...)})
	x = g.Insert(at, "Mod", []*ir.Value{x, number(nil, 1<<st.Layout.Bits)})
	if !st.Layout.ForNBits && count%int64(per) != 0 {
		x = g.Insert(at, "Slice", []*ir.Value{g.Insert(at, "Reshape", []*ir.Value{x, shape(-1)}), shape(0), shape(count)})
	}
	return x
}
