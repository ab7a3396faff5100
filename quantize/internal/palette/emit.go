package palette

import (
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// About the file size of the nodes of one weight and their small constants, of nodes for each of the cases of more, of
// the table of scales, which weights share, and of a tensor without its elements.
const nodeBytes, moreBytes, scaleTableBytes, tensorBytes = 450, 150, 560, 40

// A stored is a weight whose indices, codebooks and scales are constants of the model.
type stored struct {
	*encoding
	of    string
	parts []pass.Part
	dense *ir.Value // the weight, in nodes that runtimes fold; inserted on demand
}

func store(s *pass.Step, v *ir.Value, e *encoding) *stored {
	st := &stored{encoding: e, of: v.Name}
	for i, t := range e.derive() {
		st.parts = append(st.parts, pass.Part{
			Role:   []pass.Role{outIndices: pass.Payload, outCodebook: pass.Scales, outScales: pass.Scales}[i],
			Value:  v.Graph().AddConst(v.Name+[]string{outIndices: "_q", outCodebook: "_c", outScales: "_s"}[i], t),
			Tensor: t,
		})
	}
	return st
}

// folded emits nodes of st that runtimes fold.
func (st *stored) folded(s *pass.Step) *emitter {
	g := st.parts[outIndices].Value.Graph()
	return &emitter{Step: s, g: g, at: g.First()}
}

// part adds a constant that weights share to the parts.
func (st *stored) part(p pass.Part) {
	if !slices.ContainsFunc(st.parts, func(have pass.Part) bool { return have.Value == p.Value }) {
		st.parts = append(st.parts, p)
	}
}

// An emitter inserts the nodes of one weight.
type emitter struct {
	*pass.Step
	g  *ir.Graph
	at *ir.Node
}

func (e *emitter) node(op string, in ...*ir.Value) *ir.Value { return e.g.Insert(e.at, op, in) }

func (e *emitter) cast(v *ir.Value, to ir.DType) *ir.Value {
	return e.g.Insert(e.at, "Cast", []*ir.Value{v}, ir.IntAttr("to", int64(to)))
}

// dims is a shape as a constant.
func (e *emitter) dims(dims ...int64) *ir.Value {
	return e.Const(e.g, ir.Int64, []int64{int64(len(dims))}, ir.Ints(dims...))
}

// number is a position or a number of positions as a constant.
func (e *emitter) number(x int64) *ir.Value { return e.Const(e.g, ir.Int64, nil, ir.Ints(x)) }

// integers is a constant of an int32 type, which has more runtime kernels than smaller ones.
func (e *emitter) integers(shape []int64, xs ...int32) *ir.Value {
	return e.Const(e.g, ir.Int32, shape, ir.Int32s(xs...))
}

// dense is the weight: entries of codebooks, looked up by Gather, times scales.
func (e *emitter) dense(st *stored) *ir.Value {
	x := e.entries(st)
	// The last block, group or byte may be padded.
	if st.whole() != st.Elems {
		x = e.node("Slice", e.node("Reshape", x, e.dims(-1)), e.dims(0), e.dims(st.Elems))
	}
	x = e.node("Reshape", x, e.dims(st.weight.Shape...))
	if st.weight.DType != ir.Float {
		x = e.cast(x, st.weight.DType)
	}
	return x
}

// entries are the elements, scaled.
func (e *emitter) entries(st *stored) *ir.Value {
	of := st.parts[outIndices].Value
	if n, _ := st.unit(); st.wholeBytes() {
		x, scales := of, []int64{-1, 1, 1}
		if st.entry() > 1 {
			scales = append(scales, 1)
		}
		if st.Block > 0 {
			x = e.node("Reshape", of, e.dims(-1, st.Block/n/st.entry()))
		}
		x = e.node("Gather", e.table(st), e.cast(x, ir.Int32))
		if st.Block > 0 {
			x = e.node("Mul", x, e.scales(st, e.node("Reshape", st.parts[outScales].Value, e.dims(scales...))))
		}
		return x
	}
	x := e.indices(st, of)
	if st.whole() != st.padded() {
		x = e.node("Slice", e.node("Reshape", x, e.dims(-1)), e.dims(0), e.dims(st.whole()/st.entry()))
	}
	// One Gather for all groups: their codebooks are one list, and indices of a group start at its first entry.
	if st.Groups > 1 {
		x = e.node("Add", e.node("Reshape", x, e.dims(-1, st.Groups, st.Inner/st.entry())),
			e.offsets(st.Layout, st.Groups, 1))
	}
	x = e.node("Gather", st.parts[outCodebook].Value, x)
	if st.Block > 0 {
		x = e.node("Mul", e.node("Reshape", x, e.dims(-1, st.Block)),
			e.scales(st, e.node("Reshape", st.parts[outScales].Value, e.dims(-1, 1))))
	}
	return x
}

// wholeBytes reports whether each byte holds indices of one codebook and one block.
func (l *Layout) wholeBytes() bool {
	n, _ := l.unit()
	return l.listed() && l.Groups == 1 && l.Block%(n*l.entry()) == 0
}

// listed reports whether bytes hold several indices, each as many, so that a table has those of all bytes.
func (l *Layout) listed() bool {
	_, bytes := l.unit()
	return l.packed() && bytes == 1
}

// bytes are the indices of each byte.
func (e *emitter) bytes(st *stored) *ir.Value {
	n, _ := st.unit()
	bytes := e.Const(st.parts[outIndices].Value.Graph(), ir.Uint8, []int64{256, n}, kernel.ByteValues(int(st.bits())))
	st.part(pass.Part{Role: pass.Scales, Value: bytes, Tensor: bytes.Const, Folded: -1})
	return st.folded(e.Step).cast(bytes, ir.Int32)
}

// table are the entries of the indices of each byte. Elements are found by a lookup of whole bytes in it: runtimes,
// which keep what folded nodes compute until they have folded all, hold fewer tensors of the weight's size than with an
// index for each element.
func (e *emitter) table(st *stored) *ir.Value {
	return st.folded(e.Step).node("Gather", st.parts[outCodebook].Value, e.bytes(st))
}

// indices are stored indices as integers, unpacked from bytes, the lowest bits first.
func (e *emitter) indices(st *stored, v *ir.Value) *ir.Value {
	x := e.cast(v, ir.Int32)
	switch {
	case !st.packed():
		return x
	case st.listed():
		return e.node("Gather", e.bytes(st), x)
	}
	// Four 6-bit indices are one 24-bit number, whose digits Div and Mod separate: BitShift of ONNX takes unsigned
	// integers only.
	x = e.node("MatMul", x, e.integers([]int64{3, 1}, 1, 1<<8, 1<<16))
	units := make([]int32, 4)
	for i := range units {
		units[i] = 1 << (int64(i) * st.bits())
	}
	x = e.node("Div", x, e.integers([]int64{4}, units...))
	return e.node("Mod", x, e.integers(nil, int32(st.Entries)))
}

// scales are stored scales as float32. Their table, which all weights share, is a part of each.
func (e *emitter) scales(st *stored, of *ir.Value) *ir.Value {
	table := e.Const(st.parts[outIndices].Value.Graph(), ir.Float16, []int64{256}, kernel.Bytes(scaleTable().half[:]))
	st.part(pass.Part{Role: pass.Scales, Value: table, Tensor: table.Const})
	return e.node("Gather", st.folded(e.Step).cast(table, ir.Float), e.cast(of, ir.Int32))
}

// offsets are the first entries of the codebooks of groups, in some shape.
func (e *emitter) offsets(l *Layout, shape ...int64) *ir.Value {
	first := make([]int32, l.Groups)
	for i := range first {
		first[i] = int32(i * l.Entries)
	}
	return e.integers(shape, first...)
}

// stretches are the positions of the stretches of rows. Those of the first ones are looked up, so that negative indices
// count from the last row.
func (e *emitter) stretches(st *stored, rows *ir.Value) *ir.Value {
	n, f := st.Row/st.stretch(), st.folded(e.Step)
	first := f.node("Reshape", f.node("Range", f.number(0), f.number(st.Elems/st.stretch()), f.number(n)), f.dims(-1, 1))
	next := make([]int64, n)
	for i := range next {
		next[i] = int64(i)
	}
	return e.node("Add", e.node("Gather", first, rows), e.dims(next...))
}

// stretchOffsets are the first entries of the codebooks of stretches.
func (e *emitter) stretchOffsets(st *stored, at *ir.Value) *ir.Value {
	group := e.node("Mod", e.node("Div", at, e.number(st.Inner/st.stretch())), e.number(st.Groups))
	shape := []int64{st.Groups, 1}
	if st.packed() {
		shape = append(shape, 1)
	}
	return e.node("Gather", e.offsets(st.Layout, shape...), group)
}

// lookUp replaces a lookup in the table st by one of indices and of scales, of whose rows alone entries are found:
// runtimes would fold the whole table.
func (st *stored) lookUp(s *pass.Step, r *rewrite.Rewriter, c *weights.Consumer) {
	e := &emitter{Step: s, g: c.Node.Graph(), at: c.Node}
	at := c.Activation() // what is looked up: rows, or stretches of them
	if !st.wholeRows() {
		at = e.stretches(st, at)
	}
	x := e.node("Gather", st.parts[outIndices].Value, at)
	if st.wholeBytes() {
		x = e.node("Gather", e.table(st), e.cast(x, ir.Int32))
	} else {
		x = e.indices(st, x)
		if st.Groups > 1 {
			x = e.node("Add", x, e.stretchOffsets(st, at))
		}
		x = e.node("Gather", st.parts[outCodebook].Value, x)
	}
	if st.Block > 0 {
		blocks := at
		if n := st.Block / st.stretch(); n > 1 {
			blocks = e.node("Div", at, e.number(n))
		}
		x = e.node("Mul", x, e.scales(st, e.node("Gather", st.parts[outScales].Value, blocks)))
	}
	// The shape of Gather's output: indices, and the axes of a row.
	shape := e.g.Insert(e.at, "Concat", []*ir.Value{e.node("Shape", c.Activation()), e.dims(st.weight.Shape[1:]...)},
		ir.IntAttr("axis", 0))
	r.ReplaceLookup(c, e.node("Reshape", x, shape), st.weight.DType)
}
