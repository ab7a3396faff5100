package palette

import (
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// About the file size of the nodes of one weight and their small constants, of nodes for each of the cases of more, of the table of
// scales, which weights share, and of a tensor without its elements.
const nodeBytes, moreBytes, scaleTableBytes, tensorBytes = 450, 150, 560, 40

// A stored is a weight whose indices, codebooks and scales are constants of the model.
type stored struct {
	*encoding
	of    string
	parts []pass.Part
	dense *ir.Value // the weight, in nodes that runtimes fold
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
	st.dense = (&emitter{Step: s, g: v.Graph(), at: v.Graph().First()}).dense(st)
	return st
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

// integers is a constant of an int32 type, which has more runtime kernels than smaller ones.
func (e *emitter) integers(shape []int64, xs ...int32) *ir.Value {
	return e.Const(e.g, ir.Int32, shape, ir.Int32s(xs...))
}

// dense is the weight: entries of codebooks, looked up by Gather, times scales.
func (e *emitter) dense(st *stored) *ir.Value {
	x := e.entries(st)
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
	if st.wholeBytes() {
		return e.bytes(st)
	}
	x := e.indices(st.Layout, st.parts[outIndices].Value)
	if st.whole() != st.padded() {
		x = e.node("Slice", e.node("Reshape", x, e.dims(-1)), e.dims(0), e.dims(st.whole()/st.entry()))
	}
	if st.Groups > 1 {
		x = e.node("Add", e.node("Reshape", x, e.dims(-1, st.Groups, st.Inner/st.entry())), e.offsets(st.Layout))
	}
	x = e.node("Gather", st.parts[outCodebook].Value, x)
	if st.Block > 0 {
		x = e.node("Mul", e.node("Reshape", x, e.dims(-1, st.Block)), e.scales(st, -1, 1))
	}
	return x
}

// wholeBytes reports whether each byte holds indices of one codebook and one block.
func (l *Layout) wholeBytes() bool {
	n, bytes := l.unit()
	return l.packed() && bytes == 1 && l.Groups == 1 && l.Block%(n*l.entry()) == 0
}

// bytes are the elements by a lookup of whole bytes in a table of their entries: runtimes, which keep what folded nodes compute until they have
// folded all, hold fewer tensors of the weight's size than with an index for each element.
func (e *emitter) bytes(st *stored) *ir.Value {
	n, _ := st.unit()
	bytes := e.Const(e.g, ir.Uint8, []int64{256, n}, kernel.ByteValues(int(st.bits())))
	st.parts = append(st.parts, pass.Part{Role: pass.Scales, Value: bytes, Tensor: bytes.Const, Folded: -1})
	table := e.node("Gather", st.parts[outCodebook].Value, e.cast(bytes, ir.Int32))
	of := st.parts[outIndices].Value
	if st.Block == 0 {
		return e.node("Gather", table, e.cast(of, ir.Int32))
	}
	of = e.node("Reshape", of, e.dims(-1, st.Block/n/st.entry()))
	scales := []int64{-1, 1, 1}
	if st.entry() > 1 {
		scales = append(scales, 1)
	}
	return e.node("Mul", e.node("Gather", table, e.cast(of, ir.Int32)), e.scales(st, scales...))
}

// indices are the stored indices as integers, unpacked from bytes, the lowest bits first.
func (e *emitter) indices(l *Layout, v *ir.Value) *ir.Value {
	x := e.cast(v, ir.Int32)
	if !l.packed() {
		return x
	}
	if l.bits() == 6 { // three bytes are a number of four indices
		x = e.node("MatMul", x, e.integers([]int64{3, 1}, 1, 1<<8, 1<<16))
	}
	n, _ := l.unit()
	units := make([]int32, n)
	for i := range units {
		units[i] = 1 << (int64(i) * l.bits())
	}
	x = e.node("Div", x, e.integers([]int64{n}, units...))
	return e.node("Mod", x, e.integers(nil, int32(l.Entries)))
}

// scales are those of blocks as float32, in some shape. Their table, which all weights share, is a part of each.
func (e *emitter) scales(st *stored, shape ...int64) *ir.Value {
	table := e.Const(e.g, ir.Float16, []int64{256}, kernel.Bytes(scaleTable().half[:]))
	v := e.cast(e.node("Reshape", st.parts[outScales].Value, e.dims(shape...)), ir.Int32)
	st.parts = append(st.parts, pass.Part{Role: pass.Scales, Value: table, Tensor: table.Const})
	return e.node("Gather", e.cast(table, ir.Float), v)
}

// offsets are the first entries of the codebooks of groups.
func (e *emitter) offsets(l *Layout) *ir.Value {
	first := make([]int32, l.Groups)
	for i := range first {
		first[i] = int32(i * l.Entries)
	}
	return e.integers([]int64{l.Groups, 1}, first...)
}
