package report

import (
	"cmp"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
)

// A folding is the runtime memory of one constant: the runtime of package pass folds constant
// expressions, casts float16 to float32 for operators without a float16 kernel and for those between them, and
// turns DequantizeLinear before a product into MatMulNBits, unless Relu or Clip follows.
type folding struct {
	*constants
	elems   int64
	shape   []int64  // of the constant
	copies  []loaded // what consumers read, each buffer once
	unknown bool     // a folded operator changes the number of elements
}

// A loaded is a buffer in the memory of the runtime.
type loaded struct {
	buffer
	bytes int64
	conv  *ir.Node // of which it is the filter
}

// A buffer is the constant itself or the output of the last folded node, as it is or
// cast to float32.
type buffer struct {
	folded *ir.Node
	dtype  ir.DType
}

// folding follows the constant v to its consumers.
func (c *constants) folding(v *ir.Value) *folding {
	f := &folding{constants: c, elems: v.Const.Elems(), shape: v.Const.Shape}
	f.follow(v, buffer{nil, v.Const.DType})
	if len(v.Uses()) == 0 {
		f.add(buffer{nil, v.Const.DType}, v.Const.Bytes(), nil)
	}
	f.merge()
	return f
}

// add adds a buffer, which may have been added before: the last number of bytes counts.
func (f *folding) add(b buffer, bytes int64, conv *ir.Node) {
	f.copies = append(f.copies, loaded{b, bytes, conv})
}

// merge makes each buffer one element of the copies. Nearly all constants have only one.
func (f *folding) merge() {
	if len(f.copies) < 2 {
		return
	}
	at := map[buffer]int{}
	var merged []loaded
	for _, l := range f.copies {
		i, known := at[l.buffer]
		if !known {
			at[l.buffer] = len(merged)
			merged = append(merged, l)
			continue
		}
		merged[i].bytes, merged[i].conv = l.bytes, cmp.Or(l.conv, merged[i].conv)
	}
	f.copies = merged
}

// loadedBytes is the bytes of the constant v once the runtime has loaded its model; where
// folding changes the number of elements, the bytes in the file.
func (c *constants) loadedBytes(v *ir.Value) int64 {
	f := c.folding(v)
	if f.unknown {
		return v.Const.Bytes()
	}
	return f.total()
}

func (f *folding) total() int64 {
	n := int64(0)
	for _, l := range f.copies {
		n += l.bytes
	}
	return n
}

// unfolded is the bytes of what consumers read as it is stored.
func (f *folding) unfolded() int64 {
	n := int64(0)
	for _, l := range f.copies {
		if l.folded == nil {
			n += l.bytes
		}
	}
	return n
}

// dense is the bytes of the folded tensors, where each has the elements of weight, and of what is read as it is stored.
func (f *folding) dense(weight *ir.Tensor) int64 {
	n := f.unfolded()
	for _, l := range f.copies {
		if l.folded == nil {
			continue
		}
		dt := l.dtype
		if !dt.IsFloat() {
			dt = weight.DType
		}
		n += padded((weight.Elems()*dt.Bits()+7)/8, l.conv, weight.Shape)
	}
	return n
}

// follow finds the tensors that consumers of v read, where v is first.
func (f *folding) follow(v *ir.Value, first buffer) {
	type output struct {
		*ir.Value
		buffer
	}
	for stack := []output{{v, first}}; len(stack) > 0; {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, u := range o.Uses() {
			if u.Node == nil || !f.folds(u.Node) {
				f.use(u, o.buffer)
				continue
			}
			if dtype, ok := f.fold(u.Node, u.Index, o.dtype); ok {
				stack = append(stack, output{u.Node.Outputs[0], buffer{u.Node, dtype}})
			}
		}
	}
}

// use adds the tensor that a use of b reads, which is not folded.
func (f *folding) use(u ir.Use, b buffer) {
	switch n := u.Node; {
	case n == nil:
		f.add(b, f.bytes(b.dtype), nil)
	case n.Op.Is("DequantizeLinear"):
		f.dequantized(n, u.Index, b)
	case f.absorbed(n, u.Index):
	default:
		if b.dtype == ir.Float16 && (!operator.Of(n).Float16CPU || f.isolated(n)) {
			b.dtype = ir.Float
		}
		if b.dtype == ir.Float && n.Op.Is("Conv") && u.Index == 1 {
			f.add(b, padded(f.bytes(b.dtype), n, f.shape), n)
			return
		}
		f.add(b, f.bytes(b.dtype), nil)
	}
}

// float16Passes reports whether the runtime leaves the float16 values of n as they are.
func float16Passes(n *ir.Node) bool { return n.Op.Is("Flatten") || operator.Of(n).Float16CPU }

func (f *folding) bytes(dt ir.DType) int64 { return (f.elems*dt.Bits() + 7) / 8 }

// fold returns the type of the output of a folded node with an input of the constant; false if another input is larger.
func (f *folding) fold(n *ir.Node, i int, dtype ir.DType) (ir.DType, bool) {
	switch facts := operator.Of(n); {
	case n.Op.Is("Cast"):
		return ir.DType(n.Int("to", 0)), true
	case facts.Move.Keeps():
		return dtype, i == 0
	case arithmetic(n, facts) && dtype.IsFloat(): // that of integers unpacks bytes
		if other := f.constants.elems(n.Input(1 - i)); other >= 0 && !f.unknown {
			return dtype, other < f.elems || other == f.elems && i == 0
		}
	// Of a table that was cast to the type in which the weight is computed.
	case n.Op.Is("Gather") && i == 1 && n.Input(0).Const == nil:
		dtype = opset.Elem(n.Input(0))
	}
	f.unknown = true
	f.steps--
	return dtype, f.steps >= 0
}
