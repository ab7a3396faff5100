package modelgen

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// local is the domain of the functions of a model.
const local = "local"

// A builder adds nodes to a graph. Methods return values with their types, so that calls nest.
type builder struct {
	r      *rand.Rand
	m      *Model
	g      *Graph
	opset  int64
	float  ir.DType // of weights and activations
	nested bool     // in the body of a node
	plain  bool     // weights have ordinary values and are initializers
	names  *int
	budget *int64 // elements of weights that may still be added
	shared map[string][]val
}

// A val is a value in the graph, with the shape of the run.
type val struct {
	name  string
	typ   ir.DType
	shape []int64
}

func (v val) rank() int { return len(v.shape) }

func (v val) elems() int64 { return ir.Spec{Shape: v.shape}.Elems() }

// last is the size of the last axis.
func (v val) last() int64 { return v.shape[v.rank()-1] }

// chance is true once in n times.
func (b *builder) chance(n int) bool { return b.r.IntN(n) == 0 }

func one[T any](b *builder, list ...T) T { return list[b.r.IntN(len(list))] }

// size is a number of channels: small, a power of two, or next to one, or prime.
func (b *builder) size() int64 {
	if b.chance(6) {
		return one(b, int64(100), 121, 126, 128, 129, 251, 255, 256, 257)
	}
	return one(b, int64(1), 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 24, 31, 32, 33, 48, 61, 63, 64, 65)
}

// wide is the other size of a weight with rows of n elements: sometimes the weight has more than one piece, which is 1
// MiB of float32. Short rows have so many that a Hessian of the next layer's inputs takes minutes and gigabytes: they
// are rare.
func (b *builder) wide(n int64) int64 {
	if n > 1 && b.chance(12) && (n >= 64 || b.chance(16)) {
		if w := int64(1<<18)/n + one(b, int64(1), 2, 3, 7, 1001, 2203, 3001); w*n < *b.budget {
			return w
		}
	}
	return b.size()
}

func (b *builder) trait(format string, args ...any) {
	if t := fmt.Sprintf(format, args...); !slices.Contains(b.m.Traits, t) {
		b.m.Traits = append(b.m.Traits, t)
	}
}

func (b *builder) name(hint string) string {
	*b.names++
	return fmt.Sprintf("%s_%d", hint, *b.names)
}

// node adds a node of one output of that type.
func (b *builder) node(op string, in []val, typ ir.DType, shape []int64, attrs ...Attr) val {
	return b.domain("", op, in, typ, shape, attrs...)
}

func (b *builder) domain(domain, op string, in []val, typ ir.DType, shape []int64, attrs ...Attr) val {
	out := val{b.name("v"), typ, shape}
	b.add(&Node{Name: b.name(op), Domain: domain, Op: op, In: namesOf(in), Out: []string{out.name}, Attrs: attrs})
	if !b.nested {
		b.m.types[out.name] = out
	}
	return out
}

func (b *builder) add(n *Node) { b.g.Nodes = append(b.g.Nodes, n) }

func namesOf(vs []val) []string {
	list := make([]string, len(vs))
	for i, v := range vs {
		list[i] = v.name
	}
	return list
}

// like adds a node whose output has the type and shape of its first input.
func (b *builder) like(op string, x val, more ...val) val {
	return b.node(op, append([]val{x}, more...), x.typ, x.shape)
}

func i64(name string, v int64) Attr         { return Attr{name, v} }
func ints(name string, v ...int64) Attr     { return Attr{name, v} }
func f32(name string, v float32) Attr       { return Attr{name, v} }
func text(name, v string) Attr              { return Attr{name, v} }
func body(name string, g *Graph) Attr       { return Attr{name, g} }
func valueAttr(name string, t *Tensor) Attr { return Attr{name, t} }

// constant adds a small constant, as initializer or as Constant node.
func (b *builder) constant(t *Tensor) val {
	if t.Name == "" {
		t.Name = b.name("c")
	}
	out := val{t.Name, t.Type, t.Shape}
	constant := b.opset >= 9 || t.Type.IsFloat() && t.Type != ir.BFloat16 // what Constant makes
	if b.nested && b.m.IR < 4 || constant && !b.plain && b.chance(4) {
		b.add(&Node{Name: b.name("Constant"), Op: "Constant", Out: []string{t.Name},
			Attrs: []Attr{valueAttr("value", t)}})
		return out
	}
	t.Input = t.Input || b.m.IR < 4
	if !b.plain && !t.Input && t.Type.Bits() > 0 {
		if t.Field = one(b, Raw, Raw, Typed, External); t.elems() < 16 {
			t.Field %= External // strict shape inference reads shapes, axes and scales, but not external data
		}
	}
	b.g.Constants = append(b.g.Constants, t)
	return out
}

// list adds a constant list of integers.
func (b *builder) list(values ...int64) val { return b.constant(int64s("", values...)) }

// number adds a constant scalar of the type of floats.
func (b *builder) number(x float64) val {
	return b.constant(tensorOf("", b.float, nil, func(int64) float64 { return x }))
}

// weight adds a weight, stored in one of many ways, or takes one of that shape that is there. fanIn is the number of
// products in a sum.
func (b *builder) weight(hint string, fanIn int64, shape ...int64) val {
	key := fmt.Sprint(hint, b.float, shape)
	if list := b.shared[key]; len(list) > 0 && b.chance(6) {
		b.trait("shared weight")
		return one(b, list...)
	}
	f := fillers[0]
	if !b.plain {
		f = b.filler()
	}
	t := filled(b.r, b.name(hint), b.float, shape, fanIn, f)
	*b.budget -= t.elems()
	v := b.stored(t, f)
	b.shared[key] = append(b.shared[key], v)
	return v
}

func (b *builder) filler() filler {
	total := 0
	for _, f := range fillers {
		total += f.weight
	}
	n := b.r.IntN(total)
	for _, f := range fillers {
		if n -= f.weight; n < 0 {
			if f.weight < 12 {
				b.trait("values: %s", f.name)
			}
			return f
		}
	}
	panic("not reached")
}

// initializer adds t as an initializer.
func (b *builder) initializer(t *Tensor) val {
	t.Input = t.Input || b.m.IR < 4
	if !b.nested {
		b.m.types[t.Name] = val{t.Name, t.Type, t.Shape}
	}
	b.g.Constants = append(b.g.Constants, t)
	return val{t.Name, t.Type, t.Shape}
}

// stored adds t as a constant, in one of the forms that exporters and optimizers make.
func (b *builder) stored(t *Tensor, f filler) val {
	in := []val{{t.Name, t.Type, t.Shape}}
	inConstant := func(t *Tensor) {
		b.add(&Node{Name: b.name("Constant"), Op: "Constant", Out: []string{t.Name},
			Attrs: []Attr{valueAttr("value", t)}})
	}
	if b.nested && b.m.IR < 4 {
		inConstant(t)
		return in[0]
	}
	if b.plain {
		return b.initializer(t)
	}
	switch n := b.r.IntN(23); {
	case n < 7:
	case n < 9:
		t.Field = Typed
		b.trait("weight in a typed field")
	case n < 11:
		t.Field = External
		t.File = b.r.IntN(3)
		b.trait("external weight")
	case n == 11:
		inConstant(t)
		b.trait("weight in a Constant node")
		return in[0]
	case n == 12 && b.sparseFits(t):
		t.Field = one(b, Sparse, SparseN)
		b.trait("sparse initializer")
	case n == 13 && b.m.IR >= 4 && !b.nested:
		t.Input = true
		b.trait("overridable weight")
	case n == 14:
		b.initializer(t)
		b.trait("weight behind Identity")
		return b.like("Identity", in[0])
	case n == 15 && len(t.Shape) == 2:
		b.trait("weight behind Transpose")
		shape := t.Shape
		t.Shape = []int64{shape[1], shape[0]}
		return b.node("Transpose", []val{b.initializer(t)}, t.Type, shape, ints("perm", 1, 0))
	case n == 16 && b.opset >= 14:
		b.trait("weight behind Reshape")
		shape := t.Shape
		t.Shape = []int64{t.elems()}
		return b.node("Reshape", []val{b.initializer(t), b.list(shape...)}, t.Type, shape)
	case n == 17 && b.float == ir.Float && f.name == fillers[0].name:
		b.trait("weight cast from float16")
		half := filled(b.r, t.Name, ir.Float16, t.Shape, 64, f)
		return b.node("Cast", []val{b.initializer(half)}, ir.Float, t.Shape, i64("to", int64(ir.Float)))
	case n == 18:
		b.trait("scaled weight")
		return b.node("Mul", []val{b.initializer(t), b.number(0.75)}, t.Type, t.Shape)
	case n == 19 && len(t.Shape) > 1 && t.Shape[0]%2 == 0:
		b.trait("concatenated weight")
		half := *t
		half.Name = b.name("part")
		half.Shape = append([]int64{t.Shape[0] / 2}, t.Shape[1:]...)
		half.Data = t.Data[:len(t.Data)/2]
		other := half
		other.Name, other.Data = b.name("part"), t.Data[len(t.Data)/2:]
		return b.node("Concat", []val{b.initializer(&half), b.initializer(&other)}, t.Type, t.Shape, i64("axis", 0))
	}
	if v, ok := b.quantized(t, f); ok {
		return v
	}
	return b.initializer(t)
}

func parameter(t *Tensor) *Tensor {
	t.Parameter = true
	return t
}

// quantized adds a weight of t's shape that is stored in fewer bits than it is used in, as the model of another
// quantizer or as bfloat16.
func (b *builder) quantized(t *Tensor, f filler) (val, bool) {
	if b.float != ir.Float || f.name != fillers[0].name || len(t.Shape) < 2 || b.nested || b.r.IntN(5) > 0 {
		return val{}, false
	}
	bytes := func(dt ir.DType, low, high int) val {
		return b.initializer(tensorOf(t.Name, dt, t.Shape,
			func(int64) float64 { return float64(low + b.r.IntN(high-low)) }))
	}
	scales := func(shape ...int64) val {
		return b.constant(parameter(tensorOf("", ir.Float, shape,
			func(int64) float64 { return 0.002 + 0.001*b.r.Float64() })))
	}
	switch {
	case b.opset >= 13 && b.chance(3):
		b.trait("weight cast from bfloat16")
		return b.cast(b.initializer(filled(b.r, t.Name, ir.BFloat16, t.Shape, 64, f)), ir.Float), true
	case b.opset >= 21 && b.chance(2) && t.elems()%2 == 0:
		b.trait("weight in 4 bits")
		packed := tensorOf(t.Name, ir.Uint4, t.Shape, func(int64) float64 { return 0 })
		packed.Data = make([]byte, (t.elems()+1)/2)
		for i := range packed.Data {
			packed.Data[i] = byte(b.r.IntN(256))
		}
		return b.node("DequantizeLinear", []val{b.initializer(packed), scales(t.Shape[0])}, ir.Float, t.Shape,
			i64("axis", 0)), true
	case b.opset >= 13:
		b.trait("weight in 8 bits by channel")
		return b.node("DequantizeLinear", []val{bytes(ir.Int8, -127, 128), scales(t.Shape[0])}, ir.Float, t.Shape,
			i64("axis", 0)), true
	case b.opset >= 10:
		b.trait("weight in 8 bits")
		zero := b.constant(tensorOf("", ir.Uint8, nil, func(int64) float64 { return 128 }))
		return b.node("DequantizeLinear", []val{bytes(ir.Uint8, 0, 256), scales(), zero}, ir.Float, t.Shape), true
	}
	return val{}, false
}

// sparseFits reports whether t can be a sparse initializer: onnx.checker requires values, and the file must not expand.
func (b *builder) sparseFits(t *Tensor) bool {
	return b.m.IR >= 5 && t.Type == ir.Float && nonZero(t.Data) && !b.nested && t.elems() < 1<<14
}

// reshape gives x another shape; a dimension of -1 takes the rest.
func (b *builder) reshape(x val, shape ...int64) val {
	known, rest := int64(1), -1
	result := slices.Clone(shape)
	for i, d := range shape {
		if d < 0 {
			rest = i
		} else {
			known *= d
		}
	}
	if rest >= 0 {
		result[rest] = x.elems() / known
	}
	return b.node("Reshape", []val{x, b.list(shape...)}, x.typ, result)
}

func (b *builder) transpose(x val, perm ...int64) val {
	shape := make([]int64, len(perm))
	for i, p := range perm {
		shape[i] = x.shape[p]
	}
	return b.node("Transpose", []val{x}, x.typ, shape, ints("perm", perm...))
}

func (b *builder) unsqueeze(x val, axis int64) val {
	shape := slices.Insert(slices.Clone(x.shape), int(axis), 1)
	if b.opset < 13 {
		return b.node("Unsqueeze", []val{x}, x.typ, shape, ints("axes", axis))
	}
	return b.node("Unsqueeze", []val{x, b.list(axis)}, x.typ, shape)
}

func (b *builder) squeeze(x val, axis int64) val {
	shape := slices.Delete(slices.Clone(x.shape), int(axis), int(axis)+1)
	if b.opset < 13 {
		return b.node("Squeeze", []val{x}, x.typ, shape, ints("axes", axis))
	}
	return b.node("Squeeze", []val{x, b.list(axis)}, x.typ, shape)
}

func (b *builder) cast(x val, t ir.DType) val {
	return b.node("Cast", []val{x}, t, x.shape, i64("to", int64(t)))
}

// slice is the elements from start to end of one axis.
func (b *builder) slice(x val, axis, start, end int64) val {
	shape := slices.Clone(x.shape)
	shape[axis] = end - start
	if b.opset < 10 {
		return b.node("Slice", []val{x}, x.typ, shape, ints("starts", start), ints("ends", end), ints("axes", axis))
	}
	return b.node("Slice", []val{x, b.list(start), b.list(end), b.list(axis)}, x.typ, shape)
}

// split divides an axis into equal parts.
func (b *builder) split(x val, axis int64, parts int64) []val {
	sizes := make([]int64, parts)
	shape := slices.Clone(x.shape)
	shape[axis] /= parts
	n := &Node{Name: b.name("Split"), Op: "Split", In: []string{x.name}, Attrs: []Attr{i64("axis", axis)}}
	var outs []val
	for i := range sizes {
		sizes[i] = shape[axis]
		outs = append(outs, val{b.name("v"), x.typ, shape})
		n.Out = append(n.Out, outs[i].name)
	}
	switch {
	case b.opset < 13:
		n.Attrs = append(n.Attrs, ints("split", sizes...))
	case b.opset >= 18 && b.chance(2):
		n.Attrs = append(n.Attrs, i64("num_outputs", parts))
	default:
		n.In = append(n.In, b.list(sizes...).name)
	}
	b.add(n)
	return outs
}

func (b *builder) concat(axis int64, vs ...val) val {
	shape := slices.Clone(vs[0].shape)
	for _, v := range vs[1:] {
		shape[axis] += v.shape[axis]
	}
	return b.node("Concat", vs, vs[0].typ, shape, i64("axis", axis))
}

// mean is ReduceMean that keeps its axes.
func (b *builder) mean(x val, axes ...int64) val {
	shape := slices.Clone(x.shape)
	for _, a := range axes {
		shape[(a+int64(x.rank()))%int64(x.rank())] = 1
	}
	if b.opset < 18 {
		return b.node("ReduceMean", []val{x}, x.typ, shape, ints("axes", axes...), i64("keepdims", 1))
	}
	return b.node("ReduceMean", []val{x, b.list(axes...)}, x.typ, shape, i64("keepdims", 1))
}

func (b *builder) softmax(x val) val {
	return b.node("Softmax", []val{x}, x.typ, x.shape, i64("axis", int64(x.rank()-1)))
}
