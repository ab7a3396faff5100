package sparse

import (
	"math/bits"

	"github.com/mcompress/mcompress/ir"
)

// Sizes are those of the protobuf messages that the writer makes of a graph. This
// package does not know the format; its counts are compared with written files by
// its tests.

// nameBytes is counted for a generated name: they reach that length in models with
// a hundred thousand of them.
const nameBytes = 6

// bytesIn is what l's tensors take, without the graph around them.
func bytesIn(l layout) int64 {
	n := int64(0)
	for _, p := range l.parts() {
		n += p.Bytes()
	}
	return n
}

// cost is what l takes in a model: tensors, nodes, names and helper constants. Constants
// that several forms use are counted for each. v is the dense weight.
func cost(l layout, v *ir.Value) int64 {
	g := ir.NewModel().Graph
	b := &builder{g: g, values: map[*ir.Tensor]*ir.Value{}, konst: unshared}
	var parts []*ir.Tensor
	for _, p := range l.parts() {
		parts = append(parts, &ir.Tensor{Spec: p.Spec})
	}
	l.build(b, parts).Name = v.Name
	n := int64(0)
	for _, k := range g.Consts() {
		n += message(tensorBytes(k.Const.Spec) + text(k.Name))
	}
	if v.Graph().Function() != nil && v.Graph().Outer == nil {
		n += int64(len(g.Consts())) * constantNode
	}
	for node := range g.Nodes() {
		n += message(nodeBytes(node))
	}
	return n
}

// constantNode is the size of a Constant node without its tensor: a function has no
// initializers.
const constantNode = 36

func unshared(g *ir.Graph, dt ir.DType, shape []int64, data []byte) *ir.Value {
	return g.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: ir.Mem(data)})
}

// denseCost is the size of an initializer.
func denseCost(s ir.Spec, name string) int64 {
	return message(tensorBytes(s) + message(int64(len(name))))
}

func tensorBytes(s ir.Spec) int64 {
	n := varint(int64(s.DType)) + message(s.Bytes())
	for _, d := range s.Shape {
		n += varint(d)
	}
	return n
}

func nodeBytes(n *ir.Node) int64 {
	size := message(int64(len(n.Op.Type)))
	for _, v := range n.Inputs() {
		size += text(v.Name)
	}
	for _, v := range n.Outputs {
		size += text(v.Name)
	}
	for _, a := range n.Attrs {
		size += message(attrBytes(a))
	}
	return size
}

func attrBytes(a *ir.Attr) int64 {
	n := message(int64(len(a.Name))) + varint(int64(a.Type))
	switch a.Type {
	case ir.AttrInt:
		return n + varint(a.I)
	case ir.AttrInts:
		for _, i := range a.Ints {
			n += varint(i)
		}
	case ir.AttrString:
		n += message(int64(len(a.S)))
	case ir.AttrTensor:
		n += message(tensorBytes(a.Tensor.Spec))
	}
	return n
}

// text is a field that holds a name, which may be a generated one.
func text(name string) int64 { return message(max(int64(len(name)), nameBytes)) }

// message is a field of n bytes with its tag and length.
func message(n int64) int64 { return varint(n) + n }

// varint is a field that holds a number, not negative, with its tag.
func varint(v int64) int64 { return 1 + int64(bits.Len64(uint64(v|1))+6)/7 }
