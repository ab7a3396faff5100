package quantize

import (
	"github.com/mcompress/mcompress/ir"
)

// dequantizedBlocks is the float matrix of K×N, made at the head of the graph that holds the codes. ONNX Runtime folds the
// Transposes of codes that lie the other way round.
func (r *rewriter) dequantizedBlocks(st *stored) *ir.Value {
	in := []*ir.Value{st.codes, st.scale}
	if st.zero != nil {
		in = append(in, st.zero)
	}
	if !st.b.standing() {
		for i, v := range in {
			in[i] = r.stood(st, v)
		}
	}
	attrs := []*ir.Attr{ir.IntAttr("axis", 1)}
	if st.b.blocks() > 1 {
		attrs = []*ir.Attr{ir.IntAttr("axis", 0), ir.IntAttr("block_size", int64(st.b.grid.Block))}
	}
	return st.home.Insert(behind(st.home, in), "DequantizeLinear", in, attrs...)
}

// stood is a constant whose columns lie, as DequantizeLinear wants it: turned, or for one block a column a vector.
func (r *rewriter) stood(st *stored, v *ir.Value) *ir.Value {
	g := st.home
	if v.Const.Shape[1] == 1 {
		to := r.c.Const(g, ir.Int64, []int64{1}, ir.Ints(st.b.cols))
		return g.Insert(g.First(), "Reshape", []*ir.Value{v, to})
	}
	return g.Insert(g.First(), "Transpose", []*ir.Value{v}, ir.IntsAttr("perm", 1, 0))
}

// gatherBlocks looks up rows of codes and of their scales. Gather takes no type below a byte: runtimes fold the Cast.
func (r *rewriter) gatherBlocks(s *site, st *stored) {
	g, at := s.node.Graph(), s.node
	rows := func(v *ir.Value) *ir.Value { return g.Insert(at, "Gather", []*ir.Value{v, s.act()}) }
	codes := rows(r.bytes(st, st.codes))
	var zero *ir.Value
	if st.zero != nil {
		zero = rows(r.bytes(st, st.zero))
	}
	shape := g.Insert(at, "Shape", []*ir.Value{codes})
	x := g.Insert(at, "Reshape", []*ir.Value{r.steps(g, at, st, codes, zero, rows(st.scale)), shape})
	if s.elem != ir.Float {
		x = r.cast(g, at, x, s.elem)
	}
	r.replace(s, x)
}

// bytes is codes, or zero points, a byte each.
func (r *rewriter) bytes(st *stored, v *ir.Value) *ir.Value {
	if st.b.bits == 8 {
		return v
	}
	k := key{st.home, v}
	if r.wide[k] == nil {
		to := ir.Uint8
		if st.b.grid.Low < 0 {
			to = ir.Int8
		}
		r.wide[k] = r.cast(st.home, st.home.First(), v, to)
	}
	return r.wide[k]
}

// steps is (codes - zero)·scale for some columns, blocks × rows of a block.
func (r *rewriter) steps(g *ir.Graph, at *ir.Node, st *stored, codes, zero, scale *ir.Value) *ir.Value {
	n, block := st.b.blocks(), int64(st.b.grid.Block)
	blocks := func(v *ir.Value, size int64) *ir.Value {
		to := r.c.Const(g, ir.Int64, []int64{3}, ir.Ints(-1, n, size))
		return g.Insert(at, "Reshape", []*ir.Value{v, to})
	}
	x := blocks(r.cast(g, at, codes, ir.Float), block)
	if zero != nil {
		x = g.Insert(at, "Sub", []*ir.Value{x, blocks(r.cast(g, at, zero, ir.Float), 1)})
	}
	if st.b.grid.Half {
		scale = r.cast(g, at, scale, ir.Float)
	}
	return g.Insert(at, "Mul", []*ir.Value{x, blocks(scale, 1)})
}

// castBlocks is the whole weight in nodes that runtimes fold.
func (r *rewriter) castBlocks(st *stored) *ir.Value {
	g, at := st.home, st.home.First()
	codes := st.codes
	if st.b.packed() {
		codes = r.unpacked(g, at, st)
	}
	shape := r.c.Const(g, ir.Int64, []int64{int64(len(st.t.Shape))}, ir.Ints(st.t.Shape...))
	x := g.Insert(at, "Reshape", []*ir.Value{r.steps(g, at, st, codes, st.zero, st.scale), shape})
	if st.t.DType != ir.Float {
		x = r.cast(g, at, x, st.t.DType)
	}
	return x
}

// unpacked takes bytes apart by arithmetic that every opset has: floats hold bytes exactly.
func (r *rewriter) unpacked(g *ir.Graph, at *ir.Node, st *stored) *ir.Value {
	number := func(f float32) *ir.Value { return r.c.Const(g, ir.Float, nil, ir.Floats(f)) }
	column := r.c.Const(g, ir.Int64, []int64{2}, ir.Ints(-1, 1))
	rest := g.Insert(at, "Reshape", []*ir.Value{r.cast(g, at, st.codes, ir.Float), column})
	per := 8 / st.b.bits
	codes := make([]*ir.Value, per)
	for i := per - 1; i > 0; i-- {
		unit := float32(int(1) << (i * st.b.bits))
		codes[i] = g.Insert(at, "Floor", []*ir.Value{g.Insert(at, "Mul", []*ir.Value{rest, number(1 / unit)})})
		rest = g.Insert(at, "Sub", []*ir.Value{rest, g.Insert(at, "Mul", []*ir.Value{codes[i], number(unit)})})
	}
	codes[0] = rest
	return g.Insert(at, "Concat", codes, ir.IntAttr("axis", 1))
}
