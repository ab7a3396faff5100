package packedweight

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Weights that are dequantized by elementary operators, as below opset 21, are packed operator by operator: integers
// become numbers (Cast), bytes are divided into values of a few bits (Div, Mod), and zero points (Sub) and scales (Mul)
// are broadcast to them.

// Cast makes numbers of integers of at most 8 bits, and a Lookup of type Float of one of type Float16.
func Cast(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	x, to := in[0], ir.DType(n.Int("to", 0))
	switch w := packed[0].(type) {
	case *Lookup:
		if to == ir.Float {
			return w.As(to)
		}
	case *Quantized:
		if to == ir.Float && w.unscaled {
			return w
		}
	case nil:
		if (isByte(x.DType) || narrow.IsInt(x.DType)) && (to == ir.Float || to == ir.Int32) {
			all := &Granularity{total: int(x.Elems()), single: true}
			return &Quantized{Granularity: all, x: withoutOwner(x), values: valuesOf(x.DType), unscaled: true}
		}
	}
	return nil
}

// Div divides bytes, one in each row, by the units of the values in them.
func Div(_ *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	w, ok := packed[0].(*Quantized)
	x, units := in[0].Shape, in[1]
	if !ok || !w.plain() || w.x.DType != ir.Uint8 || len(x) == 0 || x[len(x)-1] != 1 {
		return nil
	}
	if units.DType != ir.Int32 || len(units.Shape) != 1 || !op.IsKnown(units) {
		return nil
	}
	of := map[int64]ir.DType{2: ir.Uint4, 4: ir.Uint2}[units.Shape[0]]
	// Units are powers of two, 1, 4, 16, 64 or 1, 16: the quotient of a byte by them is a shift by whole values, and
	// Mod then masks the rest.
	for i, unit := range ir.View[int32](units) {
		if of == ir.Undefined || unit != 1<<(i*int(of.Bits())) {
			return nil
		}
	}
	elems := units.Shape[0] * w.x.Elems()
	return &Quantized{
		Granularity: &Granularity{total: int(elems), single: true},
		x:           &ir.Array{DType: of, Shape: []int64{elems}, Data: w.x.Data},
		values:      w.values, unscaled: true, quotients: true,
	}
}

// Mod takes the values of quotients.
func Mod(_ *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	w, ok := packed[0].(*Quantized)
	if !ok || !w.quotients || in[1].DType != ir.Int32 || in[1].Elems() != 1 || !op.IsKnown(in[1]) ||
		ir.View[int32](in[1])[0] != 1<<w.x.DType.Bits() {
		return nil
	}
	// A copy: the quotients may have other consumers.
	other := *w
	other.values, other.quotients = valuesOf(w.x.DType), false
	return &other
}

// Sub subtracts zero points, which are broadcast.
func Sub(_ *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	w, ok := packed[0].(*Quantized)
	g := broadcastGranularity(in[0].Shape, in[1].Shape)
	if !ok || !w.plain() || in[0].DType != ir.Float || g == nil {
		return nil
	}
	zero := in[1]
	switch z, ok := packed[1].(*Quantized); {
	case ok && z.x.Data != nil:
		zero = Dense(z, zero.Shape)
	case packed[1] != nil && !ok:
		return nil
	}
	other := *w
	other.Granularity, other.zero = g, &ir.Array{DType: ir.Uint8, Shape: in[1].Shape}
	if !op.IsKnown(zero) {
		return &other
	}
	other.zero.Data = make([]byte, zero.Elems())
	for i, v := range ir.View[float32](zero) {
		// Zero points are stored as values of the type: one that is none makes the weight dense.
		at := slices.Index(w.values, v)
		if at < 0 {
			return nil
		}
		other.zero.Data[i] = byte(at)
	}
	return &other
}

// Mul multiplies packed elements by their scales: blocks of elements of a table, one for each index of all axes but the
// last, and sparse elements, one for each index of the first axis. Scales of a Quantized are broadcast.
func Mul(_ *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	if s, ok := packed[0].(*Sparse); ok && packed[1] == nil {
		return scaledSparse(s, in[0].Shape, in[1])
	}
	for i := range in {
		// Factors may be in either order: exporters write both.
		x, scale, last := in[i], in[1-i], len(in[i].Shape)-1
		values, ok := packed[i].(*Lookup)
		if !ok || x.DType != ir.Float || last < 0 ||
			!slices.Equal(append(slices.Clone(x.Shape[:last]), 1), scale.Shape) {
			continue
		}
		s := &Scaled{Values: values, Block: int(x.Shape[last])}
		switch l, ok := packed[1-i].(*Lookup); {
		case ok:
			s.Scales = l
		case packed[1-i] != nil:
			return nil
		case op.IsKnown(scale):
			s.Floats = ir.View[float32](scale)
		default:
			s.Floats = make([]float32, scale.Elems())
		}
		return s
	}
	return scaledQuantized(in, packed)
}

// scaledSparse is sparse elements of this shape times scales, or nil if there is not one for each index of the first
// axis.
func scaledSparse(s *Sparse, shape []int64, scales *ir.Array) op.Packed {
	n := scales.Elems()
	if len(scales.Shape) != len(shape) || len(shape) == 0 || n == 0 || n != shape[0] || scales.Shape[0] != n ||
		scales.DType != ir.Float {
		return nil
	}
	if !op.IsKnown(scales) {
		return s
	}
	return s.Scaled(ir.View[float32](scales), int(op.Product(shape[1:])))
}

// scaledQuantized is a Quantized times scales, which are broadcast in the same way as zero points.
func scaledQuantized(in []*ir.Array, packed []op.Packed) op.Packed {
	w, ok := packed[0].(*Quantized)
	g := broadcastGranularity(in[0].Shape, in[1].Shape)
	if !ok || !w.unscaled || w.quotients || in[0].DType != ir.Float || packed[1] != nil || g == nil {
		return nil
	}
	other := *w
	other.unscaled, other.scales = false, int(in[1].Elems())
	// A zero point for each of other scales cannot be kept; a single one can be repeated.
	if w.zero != nil && *g != *w.Granularity {
		if !w.single {
			return nil
		}
		other.zero = repeatedZero(w.zero, in[1].Shape)
	}
	other.Granularity = g
	if op.IsKnown(in[1]) {
		other.scale = ir.View[float32](in[1])
	}
	return &other
}

// repeatedZero is a single zero point for each scale.
func repeatedZero(zero *ir.Array, shape []int64) *ir.Array {
	all := &ir.Array{DType: zero.DType, Shape: shape}
	if op.IsKnown(zero) {
		all.Data = slices.Repeat(zero.Data, int(all.Elems()))
	}
	return all
}

// plain reports whether w is integers without zero points and scales.
func (w *Quantized) plain() bool { return w.unscaled && !w.quotients && w.zero == nil }

// broadcastGranularity is that of values that are broadcast to x: one for all, for each index of an axis, or for
// blocks, an axis in which only the values have a size of 1. It is nil for others.
func broadcastGranularity(x, values []int64) *Granularity {
	if len(values) > len(x) {
		return nil
	}
	g := &Granularity{total: int(op.Product(x)), single: op.Product(values) == 1}
	if g.single {
		return g
	}
	values = append(slices.Repeat([]int64{1}, len(x)-len(values)), values...)
	var kept, blocked []int // axes that both have, and those of x only
	for i, n := range values {
		switch {
		case n == x[i] && n != 1:
			kept = append(kept, i)
		case n == 1 && x[i] != 1:
			blocked = append(blocked, i)
		case n != x[i]:
			return nil
		}
	}
	size := func(shape []int64) int { return int(op.Product(shape)) }
	switch {
	case len(kept) == 1:
		axis := kept[0]
		g.outer, g.dim, g.inner = size(x[:axis]), int(x[axis]), size(x[axis+1:])
	case len(blocked) == 1 && blocked[0] > 0:
		axis := blocked[0]
		g.outer, g.dim, g.inner, g.block = size(x[:axis-1]), int(x[axis-1]*x[axis]), size(x[axis+1:]), int(x[axis])
	default:
		return nil
	}
	return g
}
