package rewrite

import (
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// dequantize is the float matrix K×N, inserted at the start of the graph with the quantized weight. ONNX Runtime folds
// the Transposes of column-major quantized weights.
func (st *Blockwise) dequantize(r *Rewriter, _ bool) *ir.Value {
	in := []*ir.Value{st.Quantized, st.ScaleValue}
	if st.ZeroPointValue != nil {
		in = append(in, st.ZeroPointValue)
	}
	if !st.Layout.RowMajor() {
		// DequantizeLinear needs scales and zero points in the orientation of the values.
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

// asRowMajor is a column-major constant as DequantizeLinear requires it: transposed, or a vector for one block per
// column.
func (r *Rewriter) asRowMajor(st *Blockwise, v *ir.Value) *ir.Value {
	g := st.Graph
	if v.Const.Shape[1] == 1 {
		to := r.step.Const(g, ir.Int64, []int64{1}, ir.Ints(st.Layout.Cols))
		return g.Insert(g.First(), "Reshape", []*ir.Value{v, to})
	}
	return g.Insert(g.First(), "Transpose", []*ir.Value{v}, ir.IntsAttr("perm", 1, 0))
}

// gather looks up rows of quantized values and of their scales. Gather does not support types below a byte: runtimes
// fold the Cast.
func (st *Blockwise) gather(r *Rewriter, s *weights.Consumer) {
	g, at := s.Node.Graph(), s.Node
	st.lookup = true
	if st.Layout.ForNBits {
		r.Replace(s, st.gatherBytes(r, s))
		return
	}
	// Rows are looked up before they are dequantized: only what is found becomes floats.
	rows := func(v *ir.Value) *ir.Value { return g.Insert(at, "Gather", []*ir.Value{v, s.Activation()}) }
	quantized := rows(r.castToBytes(st, st.Quantized))
	var zero *ir.Value
	if st.ZeroPointValue != nil {
		zero = r.Cast(g, at, rows(r.castToBytes(st, st.ZeroPointValue)), ir.Float)
	}
	shape := g.Insert(at, "Shape", []*ir.Value{quantized})
	blocks := st.blockShape()
	x := r.reshapeTo(g, at, r.Cast(g, at, quantized, ir.Float), blocks.values...)
	x = g.Insert(at, "Reshape", []*ir.Value{r.dequantizeBlocks(g, at, st, x, zero, rows(st.ScaleValue), blocks.scales),
		shape})
	// The consumers of a float16 table read float16.
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
		r.casts[k] = r.reshapeTo(g, at, r.unpack(g, at, st, v, st.values(v), to), st.Layout.Cols, -1)
	} else {
		r.casts[k] = r.Cast(g, at, v, to)
	}
	return r.casts[k]
}

// packed reports whether bytes of v hold several quantized values or zero points.
func (st *Blockwise) packed(v *ir.Value) bool {
	return st.Layout.BytePacked() && (v == st.Quantized || st.Layout.ZeroPointsPacked())
}

// values is the number of values of v, or of zero points.
func (st *Blockwise) values(v *ir.Value) int64 {
	if v == st.Quantized {
		return st.Layout.Rows * st.Layout.Cols
	}
	return st.Layout.NumBlocks() * st.Layout.Cols
}

// castToFloat is quantized values, or zero points, as floats.
func (r *Rewriter) castToFloat(g *ir.Graph, at *ir.Node, st *Blockwise, v *ir.Value) *ir.Value {
	if st.packed(v) {
		return r.unpack(g, at, st, v, st.values(v), ir.Float)
	}
	return r.Cast(g, at, v, ir.Float)
}

// A blockShape is the shapes of quantized values, and of scales and zero points, in which they broadcast: of columns ×
// blocks × block size, or of a row-major matrix blocks × block size × columns.
type blockShape struct{ values, scales []int64 }

func (st *Blockwise) blockShape() blockShape {
	n, block := st.Layout.NumBlocks(), int64(st.Layout.Spec.Block)
	if st.Layout.RowMajor() {
		return blockShape{[]int64{n, block, -1}, []int64{n, 1, -1}}
	}
	return blockShape{[]int64{-1, n, block}, []int64{-1, n, 1}}
}

// byteShape is the shape of packed bytes whose values unpack to such a shape, with an axis for those of a byte; false
// if bytes span blocks, or rows of a row-major matrix.
func (st *Blockwise) byteShape() (blockShape, bool) {
	s, per := st.blockShape(), int64(8/st.Layout.Bits)
	if st.Layout.RowMajor() {
		return blockShape{s.values, append(s.scales, per)}, st.Layout.Cols%per == 0
	}
	s.values[2] /= per
	return blockShape{s.values, append(s.scales, 1)}, int64(st.Layout.Spec.Block)%per == 0
}

// Reshape is the constant v of g in another shape, which runtimes fold.
func (r *Rewriter) Reshape(g *ir.Graph, v *ir.Value, shape ...int64) *ir.Value {
	return r.reshapeTo(g, g.First(), v, shape...)
}

func (r *Rewriter) reshapeTo(g *ir.Graph, at *ir.Node, v *ir.Value, shape ...int64) *ir.Value {
	return g.Insert(at, "Reshape", []*ir.Value{v,
		r.step.Const(g, ir.Int64, []int64{int64(len(shape))}, ir.Ints(shape...))})
}

// dequantizeBlocks is (q - zero point) · scale of quantized values and zero points as floats, where scales and zero
// points have that shape.
func (r *Rewriter) dequantizeBlocks(g *ir.Graph, at *ir.Node, st *Blockwise, x, zero, scale *ir.Value,
	shape []int64) *ir.Value {
	switch z := st.Layout.ImpliedZeroPoint(); {
	case zero != nil:
		x = g.Insert(at, "Sub", []*ir.Value{x, r.reshapeTo(g, at, zero, shape...)})
	case z != 0:
		x = g.Insert(at, "Sub", []*ir.Value{x, r.step.Const(g, ir.Float, nil, ir.Floats(float32(z)))})
	}
	// Products are computed in float32 and rounded once, as a reader restores them.
	if st.Layout.Spec.Half {
		scale = r.Cast(g, at, scale, ir.Float)
	}
	return g.Insert(at, "Mul", []*ir.Value{x, r.reshapeTo(g, at, scale, shape...)})
}

// castMul is the whole weight in nodes that runtimes fold.
func (st *Blockwise) castMul(r *Rewriter) *ir.Value {
	g, at := st.Graph, st.Graph.First()
	var zero, x *ir.Value
	if st.ZeroPointValue != nil {
		zero = r.castToFloat(g, at, st, st.ZeroPointValue)
	}
	shape, whole := st.byteShape()
	if whole && st.packed(st.Quantized) { // bytes are reshaped, and not the values, which take several times as much
		x = r.unpack(g, at, st, r.reshapeTo(g, at, st.Quantized, shape.values...), st.values(st.Quantized), ir.Float)
	} else {
		shape = st.blockShape()
		x = r.reshapeTo(g, at, r.castToFloat(g, at, st, st.Quantized), shape.values...)
	}
	x = r.reshapeTo(g, at, r.dequantizeBlocks(g, at, st, x, zero, st.ScaleValue, shape.scales), st.Weight.Shape...)
	if st.Weight.DType != ir.Float {
		x = r.Cast(g, at, x, st.Weight.DType)
	}
	return x
}

// unpack is the values of packed bytes, the lowest bits of a byte first: each byte is looked up in a table of its
// values in the type that they are needed in, so that runtimes, which keep what folded nodes compute until they have
// folded all, hold few tensors of the weight's size. The last byte of all holds fewer than the others where count, the
// number of values, is no multiple.
func (r *Rewriter) unpack(g *ir.Graph, at *ir.Node, st *Blockwise, packed *ir.Value, count int64,
	to ir.DType) *ir.Value {
	per := int64(8 / st.Layout.Bits)
	one := func(n int64) *ir.Value { return r.step.Const(g, ir.Int64, []int64{1}, ir.Ints(n)) }
	table := st.table(r, kernel.ByteValues(st.Layout.Bits))
	if to != ir.Uint8 {
		// The table is cast and not the weight: a conversion of 256 bytes.
		table = r.Cast(g, at, table, to)
	}
	x := g.Insert(at, "Gather", []*ir.Value{table, r.Cast(g, at, packed, ir.Int32)})
	if count%per != 0 {
		x = g.Insert(at, "Slice", []*ir.Value{r.reshapeTo(g, at, x, -1), one(0), one(count)})
	}
	return x
}
