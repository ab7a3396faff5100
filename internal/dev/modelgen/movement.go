package modelgen

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// moved moves elements of x: by padding, repetition, lookups, and sequences.
func (b *builder) moved(x val) val {
	last, axis := x.last(), int64(x.rank()-1)
	switch op := one(b, "Pad", "Tile", "Expand", "Gather", "GatherElements", "GatherND", "ScatterElements",
		"ScatterND", "Trilu", "CumSum", "Sequence", "OneHot", "TopK", "Slice",
		"ReverseSequence", "CastLike", "ConstantOfShape", "EyeLike", "Shape", "Compress", "integers", "integers"); {
	case op == "Pad" && b.opset >= 11:
		pads := make([]int64, 2*x.rank())
		pads[x.rank()-1], pads[2*x.rank()-1] = 1, 2
		return b.node("Pad", []val{x, b.list(pads...)}, x.typ, with(x.shape, -1, last+3))
	case op == "Pad":
		pads := make([]int64, 2*x.rank())
		pads[2*x.rank()-1] = 1
		return b.node("Pad", []val{x}, x.typ, with(x.shape, -1, last+1), ints("pads", pads...))
	case op == "Tile":
		repeats := slices.Repeat([]int64{1}, x.rank())
		repeats[x.rank()-1] = 2
		return b.node("Tile", []val{x, b.list(repeats...)}, x.typ, with(x.shape, -1, 2*last))
	case op == "Expand" && b.opset >= 8:
		row := b.slice(x, axis, 0, 1)
		return b.node("Expand", []val{row, b.list(with(x.shape, -1, 4)...)}, x.typ, with(x.shape, -1, 4))
	case op == "Gather":
		return b.node("Gather", []val{x, b.list(0, last-1, last/2)}, x.typ, with(x.shape, -1, 3), i64("axis", axis))
	case op == "GatherElements" && b.opset >= 11:
		shape := with(x.shape, -1, 2)
		return b.node(op, []val{x, b.indices(shape, last)}, x.typ, shape, i64("axis", axis))
	case op == "GatherND" && b.opset >= 11:
		return b.node(op, []val{x, b.indices([]int64{3, 1}, x.shape[0])}, x.typ, with(x.shape, 0, 3))
	case op == "ScatterElements" && b.opset >= 11:
		shape := slices.Repeat([]int64{1}, x.rank())
		return b.node(op, []val{x, b.indices(shape, last), b.constant(tensorOf("", b.float, shape, normal(b.r, 1)))},
			x.typ, x.shape, i64("axis", axis))
	case op == "ScatterND" && b.opset >= 11:
		update := with(x.shape, 0, 1)
		return b.node(op, []val{x, b.indices([]int64{1, 1}, x.shape[0]),
			b.constant(tensorOf("", b.float, update, normal(b.r, 1)))}, x.typ, x.shape)
	case op == "Trilu" && b.opset >= 14:
		return b.node(op, []val{x}, x.typ, x.shape, i64("upper", b.r.Int64N(2)))
	case op == "CumSum" && b.opset >= 11:
		return b.like(op, x, b.constant(tensorOf("", ir.Int64, nil, func(int64) float64 { return float64(axis) })))
	case op == "Sequence" && b.opset >= 11:
		return b.sequence(x)
	case op == "OneHot" && b.opset >= 11:
		ids := b.indices([]int64{x.shape[0]}, 5)
		depth := b.constant(tensorOf("", ir.Int64, []int64{1}, func(int64) float64 { return 5 }))
		values := b.constant(tensorOf("", b.float, []int64{2}, func(i int64) float64 { return float64(i) }))
		return b.node(op, []val{ids, depth, values}, b.float, []int64{x.shape[0], 5})
	case op == "TopK" && b.opset >= 11:
		b.m.discontinuous = true
		k := 1 + b.r.Int64N(last)
		top := val{b.name("v"), x.typ, with(x.shape, -1, k)}
		b.add(&Node{Name: b.name(op), Op: op, In: []string{x.name, b.list(k).name},
			Out: []string{top.name, b.name("v")}})
		return top
	case op == "Slice" && b.opset >= 10:
		shape := with(x.shape, -1, (last+1)/2)
		return b.node(op, []val{x, b.list(0), b.list(1 << 40), b.list(axis), b.list(2)}, x.typ, shape)
	case op == "ReverseSequence" && b.opset >= 10:
		lengths := b.constant(tensorOf("", ir.Int64, []int64{x.shape[1]},
			func(int64) float64 { return float64(x.shape[0]) }))
		return b.like(op, x, lengths)
	case op == "CastLike" && b.opset >= 15:
		return b.node(op, []val{b.indices([]int64{3}, 5), x}, x.typ, []int64{3})
	case op == "ConstantOfShape" && b.opset >= 9:
		shape := b.node("Shape", []val{x}, ir.Int64, []int64{int64(x.rank())})
		return b.like("Add", x, b.node(op, []val{shape}, x.typ, x.shape,
			valueAttr("value", tensorOf("", b.float, []int64{1}, func(int64) float64 { return 0.25 }))))
	case op == "EyeLike" && b.opset >= 9 && x.rank() == 2 && b.float == ir.Float:
		return b.like("Add", x, b.like(op, x))
	case op == "Shape":
		size := b.node("Size", []val{x}, ir.Int64, nil)
		return b.like("Div", x, b.cast(size, b.float))
	case op == "Compress" && b.opset >= 9:
		keep := b.constant(tensorOf("", ir.Bool, []int64{last}, func(i int64) float64 { return float64(1 - i%2) }))
		return b.node(op, []val{x, keep}, x.typ, with(x.shape, -1, (last+1)/2), i64("axis", axis))
	}
	switch op := one(b, "Range", "CumProd", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"); {
	case op == "Range" && b.opset >= 11:
		every := b.node(op, []val{b.scalar(0), b.scalar(last), b.scalar(1)}, ir.Int64, []int64{last})
		return b.node("Gather", []val{x, every}, x.typ, x.shape, i64("axis", axis))
	case op == "CumProd" && b.opset >= 26:
		return b.like(op, b.like("Sigmoid", x), b.scalar(axis))
	case op == "BitShift" && b.opset >= 11:
		one := func(n float64) val {
			return b.constant(tensorOf("", ir.Uint8, []int64{1}, func(int64) float64 { return n }))
		}
		shifted := b.node(op, []val{one(12), one(2)}, ir.Uint8, []int64{1}, text("direction", "RIGHT"))
		return b.like("Mul", x, b.cast(shifted, b.float))
	case b.opset >= 18 && op != "Range" && op != "CumProd":
		both := b.node(op, []val{b.indices([]int64{last}, 100), b.indices([]int64{1}, 100)}, ir.Int64, []int64{last})
		return b.like("Add", x, b.cast(b.like("BitwiseNot", both), b.float))
	}
	return b.unary(x)
}

// indices are constant positions below n.
func (b *builder) indices(shape []int64, n int64) val {
	return b.constant(tensorOf("", ir.Int64, shape, func(int64) float64 { return float64(b.r.Int64N(n)) }))
}

// sequence makes a sequence of x and a function of it, and takes both out again.
func (b *builder) sequence(x val) val {
	both := b.name("v")
	b.add(&Node{Name: b.name("SequenceConstruct"), Op: "SequenceConstruct",
		In: []string{x.name, b.like("Neg", x).name}, Out: []string{both}})
	if b.chance(2) {
		at := b.constant(tensorOf("", ir.Int64, nil, func(int64) float64 { return 1 }))
		return b.node("SequenceAt", []val{{name: both}, at}, x.typ, x.shape)
	}
	axis := int64(x.rank() - 1)
	return b.node("ConcatFromSequence", []val{{name: both}}, x.typ, with(x.shape, -1, 2*x.last()), i64("axis", axis))
}

// resampled changes the resolution of an image.
func (b *builder) resampled(x val) val {
	c, h, w := x.shape[1], x.shape[2], x.shape[3]
	switch op := one(b, "DepthToSpace", "SpaceToDepth", "Resize", "LpPool", "GlobalLpPool", "GridSample", "Col2Im",
		"double"); {
	case op == "DepthToSpace" && c%4 == 0:
		return b.node(op, []val{x}, x.typ, []int64{x.shape[0], c / 4, 2 * h, 2 * w}, i64("blocksize", 2))
	case op == "SpaceToDepth" && h%2 == 0 && w%2 == 0:
		return b.node(op, []val{x}, x.typ, []int64{x.shape[0], 4 * c, h / 2, w / 2}, i64("blocksize", 2))
	case op == "Resize" && b.opset >= 13:
		return b.node(op, []val{x, {}, {}, b.list(x.shape[0], c, 2*h, 2*w)}, x.typ,
			[]int64{x.shape[0], c, 2 * h, 2 * w}, text("mode", one(b, "linear", "cubic")))
	case op == "LpPool" && h > 1 && w > 1:
		return b.node(op, []val{x}, x.typ, []int64{x.shape[0], c, (h-2)/2 + 1, (w-2)/2 + 1},
			ints("kernel_shape", 2, 2), ints("strides", 2, 2))
	case op == "GlobalLpPool":
		return b.node(op, []val{x}, x.typ, []int64{x.shape[0], c, 1, 1})
	case op == "GridSample" && b.opset >= 20:
		b.m.discontinuous = true
		grid := b.constant(tensorOf("", ir.Float, []int64{x.shape[0], 3, 4, 2}, normal(b.r, 0.5)))
		return b.node(op, []val{x, grid}, x.typ, []int64{x.shape[0], c, 3, 4})
	}
	return b.double(x)
}
