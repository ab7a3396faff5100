package report

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A folding is the runtime memory of one constant: the runtime of package pass folds constant
// expressions, casts float16 to float32 for operators without a float16 kernel and for those between them, and
// turns DequantizeLinear before a product into MatMulNBits, unless Relu or Clip follows.
type folding struct {
	elems   int64
	shape   []int64             // of the constant
	convs   map[buffer]*ir.Node // of which it is the filter
	copies  map[buffer]int64    // bytes
	unknown bool                // a folded operator changes the number of elements
}

// A buffer is the constant itself or the output of the last folded node, as it is or
// cast to float32.
type buffer struct {
	folded *ir.Node
	dtype  ir.DType
}

// newFolding follows the constant v to its consumers.
func newFolding(v *ir.Value) *folding {
	f := &folding{elems: v.Const.Elems(), shape: v.Const.Shape, convs: map[buffer]*ir.Node{}, copies: map[buffer]int64{}}
	f.follow(v, buffer{nil, v.Const.DType})
	if len(v.Uses()) == 0 {
		f.copies[buffer{nil, v.Const.DType}] = v.Const.Bytes()
	}
	return f
}

// loadedBytes is the bytes of the constant v once the runtime has loaded its model; where
// folding changes the number of elements, the bytes in the file.
func loadedBytes(v *ir.Value) int64 {
	f := newFolding(v)
	if f.unknown {
		return v.Const.Bytes()
	}
	return f.total()
}

func (f *folding) total() int64 {
	n := int64(0)
	for _, b := range f.copies {
		n += b
	}
	return n
}

// dense is the bytes of the folded tensors, where each has the elements of weight.
func (f *folding) dense(weight *ir.Tensor) int64 {
	n := int64(0)
	for b := range f.copies {
		dt := b.dtype
		if !dt.IsFloat() {
			dt = weight.DType
		}
		n += padded((weight.Elems()*dt.Bits()+7)/8, f.convs[b], weight.Shape)
	}
	return n
}

// follow finds the tensors that consumers of v read, where v is b.
func (f *folding) follow(v *ir.Value, b buffer) {
	for _, u := range v.Uses() {
		switch n := u.Node; {
		case n == nil:
			f.copies[b] = f.bytes(b.dtype)
		case folds(n):
			f.fold(n, u.Index, b)
		case n.Op.Is("DequantizeLinear"):
			f.dequantized(n, u.Index, b)
		case absorbed(n, u.Index):
		default:
			b := b
			if b.dtype == ir.Float16 && (!operator.Of(n).Float16CPU || isolated(n)) {
				b.dtype = ir.Float
			}
			f.copies[b] = f.bytes(b.dtype)
			if b.dtype == ir.Float && n.Op.Is("Conv") && u.Index == 1 {
				f.convs[b] = n
				f.copies[b] = padded(f.copies[b], n, f.shape)
			}
		}
	}
}

// isolated reports whether n, which has a float16 kernel, is between nodes without one: then the runtime computes it in float32, too.
func isolated(n *ir.Node) bool {
	edges := 0
	for i, in := range n.Inputs() {
		if constant := in == nil || in.Const != nil || in.Producer() == nil || folds(in.Producer()); constant {
			continue
		}
		edges++
		if moved := i == 0 || operator.Of(n).MovesInput(i); moved && float16Passes(in.Producer()) {
			return false
		}
	}
	for _, u := range n.Outputs[0].Uses() {
		if u.Node == nil || float16Passes(u.Node) {
			return false
		}
	}
	return edges > 0
}

// float16Passes reports whether the runtime leaves the float16 values of n as they are.
func float16Passes(n *ir.Node) bool { return n.Op.Is("Flatten") || operator.Of(n).Float16CPU }

func (f *folding) bytes(dt ir.DType) int64 { return (f.elems*dt.Bits() + 7) / 8 }

// fold follows the output of a folded node with b as input i.
func (f *folding) fold(n *ir.Node, i int, b buffer) {
	switch facts := operator.Of(n); {
	case n.Op.Is("Cast"):
		f.follow(n.Outputs[0], buffer{n, ir.DType(n.Int("to", 0))})
	case facts.Move.Keeps():
		if i == 0 {
			f.follow(n.Outputs[0], buffer{n, b.dtype})
		}
	case arithmetic(n, facts) && b.dtype.IsFloat(): // that of integers unpacks bytes
		other := elems(n.Input(1 - i))
		f.unknown = f.unknown || other < 0
		if f.unknown || other < f.elems || other == f.elems && i == 0 {
			f.follow(n.Outputs[0], buffer{n, b.dtype})
		}
	default:
		f.unknown = true
		f.follow(n.Outputs[0], buffer{n, b.dtype})
	}
}

// arithmetic reports whether n computes elements of the type of its two inputs.
func arithmetic(n *ir.Node, f *operator.Facts) bool {
	return f.Elementwise == operator.Broadcasts && !f.Predicate && len(n.Inputs()) == 2
}

// folds reports whether all inputs of n are constant expressions, and the runtime folds n.
func folds(n *ir.Node) bool {
	if !ir.DefaultDomain(n.Op.Domain) || operator.Of(n).HoldsQuantized() || len(n.Outputs) != 1 {
		return false
	}
	for _, in := range n.Inputs() {
		if in == nil || in.Const != nil {
			continue
		}
		if p := in.Producer(); p == nil || len(p.Inputs()) == 0 || !folds(p) {
			return false
		}
	}
	return true
}

// elems is the number of elements of the constant expression v, negative if unknown.
func elems(v *ir.Value) int64 {
	if v.Const != nil {
		return v.Const.Elems()
	}
	n := v.Producer()
	switch facts := operator.Of(n); {
	case n.Op.Is("Cast"), facts.Move.Keeps():
		return elems(n.Input(0))
	case arithmetic(n, facts):
		a, b := elems(n.Input(0)), elems(n.Input(1))
		if min(a, b) < 0 {
			return -1
		}
		return max(a, b)
	}
	return -1
}
