package sparse

import (
	"github.com/mcompress/mcompress/ir"
)

// A builder adds the nodes of a form to a graph, before one of its nodes.
type builder struct {
	g      *ir.Graph
	at     *ir.Node
	konst  func(g *ir.Graph, dt ir.DType, shape []int64, data []byte) *ir.Value
	values map[*ir.Tensor]*ir.Value // the constants that hold parts
}

func (b *builder) op(op string, inputs []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	return b.g.Insert(b.at, op, inputs, attrs...)
}

// part is a constant that holds t.
func (b *builder) part(t *ir.Tensor) *ir.Value {
	v := b.g.AddConst("c", t)
	b.values[t] = v
	return v
}

// int64s is a list, as shapes and bounds of slices are.
func (b *builder) int64s(xs ...int64) *ir.Value {
	return b.konst(b.g, ir.Int64, []int64{int64(len(xs))}, bytesOf(ir.Int64, xs))
}

// int32 is a scalar, as positions are computed with.
func (b *builder) int32(x int64) *ir.Value {
	return b.konst(b.g, ir.Int32, nil, bytesOf(ir.Int32, []int64{x}))
}

func bytesOf(dt ir.DType, xs []int64) []byte {
	var data []byte
	for _, x := range xs {
		data = appendNumber(data, dt, x)
	}
	return data
}

func (b *builder) cast(v *ir.Value, to ir.DType) *ir.Value {
	return b.op("Cast", []*ir.Value{v}, ir.IntAttr("to", int64(to)))
}

func (b *builder) reshape(v *ir.Value, shape ...int64) *ir.Value {
	return b.op("Reshape", []*ir.Value{v, b.int64s(shape...)})
}

func (b *builder) head(v *ir.Value, count int64) *ir.Value {
	return b.op("Slice", []*ir.Value{v, b.int64s(0), b.int64s(count)})
}

func (b *builder) cumSum(v *ir.Value) *ir.Value {
	return b.op("CumSum", []*ir.Value{v, b.int32(0)})
}

// constantTensor is a tensor of equal elements. The element is given also where it is ConstantOfShape's default: OpenCV
// requires it, and tract takes the default for a double.
func (b *builder) constantTensor(dt ir.DType, elem []byte, shape ...int64) *ir.Value {
	t := &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: []int64{1}}, Source: ir.Mem(elem)}
	return b.op("ConstantOfShape", []*ir.Value{b.int64s(shape...)}, ir.TensorAttr("value", t))
}

// unpack makes count int32 from bytes that hold 8/bits each, the lowest first. Div and
// Mod are there since opset 11 for int32; BitwiseAnd only since 18.
func (b *builder) unpack(packed *ir.Value, bits, count int64) *ir.Value {
	divisors := make([]int64, 8/bits)
	for i := range divisors {
		divisors[i] = 1 << (int64(i) * bits)
	}
	v := b.reshape(b.cast(packed, ir.Int32), -1, 1)
	d := b.konst(b.g, ir.Int32, []int64{8 / bits}, bytesOf(ir.Int32, divisors))
	v = b.op("Div", []*ir.Value{v, d})
	v = b.op("Mod", []*ir.Value{v, b.int32(1 << bits)})
	v = b.reshape(v, -1)
	if count%(8/bits) == 0 {
		return v
	}
	return b.head(v, count)
}

// pick takes payload's elements in order where flags are 1, and its first one, which
// is not a value, where they are 0.
func (b *builder) pick(payload, flags *ir.Value) *ir.Value {
	at := b.op("Mul", []*ir.Value{b.cumSum(flags), flags})
	return b.op("Gather", []*ir.Value{payload, at})
}

// scatter puts values at linear positions of a dense tensor.
func (b *builder) scatter(t tensor, positions, values *ir.Value) *ir.Value {
	dense := b.constantTensor(t.DType, t.element(), t.Elems())
	flat := b.op("ScatterElements", []*ir.Value{dense, positions, values})
	return b.reshape(flat, t.Shape...)
}
