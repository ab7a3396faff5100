package onnx

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// A protoNode is a node whose edges are still names; subgraphs are read when the
// names around them are known.
type protoNode struct {
	node  *ir.Node
	edges []string   // names of inputs, then of outputs
	ins   int        // number of inputs
	rare  *protoRare // nil for most
}

func (p *protoNode) in() []string { return p.edges[:p.ins] }

func (p *protoNode) out() []string { return p.edges[p.ins:] }

// addInput adds the name of an input. Writers have inputs before outputs, but readers accept any order.
func (p *protoNode) addInput(name string) {
	if p.ins < len(p.edges) {
		r := p.more()
		r.late = append(r.late, name)
		return
	}
	p.edges = append(p.edges, name)
	p.ins++
}

// settle moves inputs that came after outputs to the others.
func (p *protoNode) settle() {
	if p.rare != nil && p.rare.late != nil {
		p.edges = slices.Concat(p.in(), p.rare.late, p.out())
		p.ins += len(p.rare.late)
		p.rare.late = nil
	}
}

// protoNodes is a list that grows without copying: models have up to millions of nodes, which are in memory together
// with those of the graph.
type protoNodes struct{ slabs [][]protoNode }

// maxSlab is the number of nodes that are allocated at a time; the first slabs of small graphs are smaller.
const maxSlab = 1024

// add adds an empty node.
func (l *protoNodes) add() *protoNode {
	last := len(l.slabs) - 1
	if last < 0 || len(l.slabs[last]) == cap(l.slabs[last]) {
		size := 4
		if last >= 0 {
			size = min(maxSlab, 2*cap(l.slabs[last]))
		}
		l.slabs = append(l.slabs, make([]protoNode, 0, size))
		last++
	}
	l.slabs[last] = append(l.slabs[last], protoNode{node: &ir.Node{}})
	return &l.slabs[last][len(l.slabs[last])-1]
}

// all are the nodes in order.
func (l *protoNodes) all(yield func(*protoNode) bool) {
	for _, slab := range l.slabs {
		for i := range slab {
			if !yield(&slab[i]) {
				return
			}
		}
	}
}

// A protoRare is what few nodes have.
type protoRare struct {
	subs   []protoSub
	late   []string   // inputs that came after outputs
	sparse *ir.Tensor // the dense form of a sparse_tensor attribute
}

// more is where the rare parts of p are added.
func (p *protoNode) more() *protoRare {
	if p.rare == nil {
		p.rare = &protoRare{}
	}
	return p.rare
}

// subs are the subgraphs of p.
func (p *protoNode) subs() []protoSub {
	if p.rare == nil {
		return nil
	}
	return p.rare.subs
}

// A protoSub is a subgraph of a node, in the pieces it came in.
type protoSub struct {
	attr   *ir.Attr
	pieces []field
	listed bool // one of the attribute's graphs, not its only graph
}

// attach makes g the graph that the attribute holds at this place.
func (s protoSub) attach(g *ir.Graph) {
	if s.listed {
		s.attr.Graphs = append(s.attr.Graphs, g)
		return
	}
	s.attr.Graph = g
}

func (d *decoder) node(g *protoGraph, f field) error {
	p := g.nodes.add()
	var x extra
	err := d.each(f.off, f.end, func(f field) error {
		switch f.num {
		case nodeInput:
			name, err := d.string(f)
			p.addInput(name)
			return err
		case nodeOutput:
			return d.names(&p.edges, f)
		case nodeName:
			return d.text(&p.node.Name, &x, f)
		case nodeOp:
			return d.word(&p.node.Op.Type, &x, f)
		case nodeDomain:
			return d.word(&p.node.Op.Domain, &x, f)
		case nodeOverload:
			return d.text(&p.node.Op.Overload, &x, f)
		case nodeAttribute:
			return d.attr(p, f)
		case nodeMeta:
			readModule(d, p, f)
			return d.addDoc(&x, f)
		case nodeDoc:
			return d.addDoc(&x, f)
		}
		return d.addField(&x, f)
	})
	p.settle()
	if x != nil {
		p.node.Extra = x
	}
	return err
}

// maxList is the size up to which a list attribute is decoded. That of a forest of 100,000 nodes is; longer ones
// only ride along.
const maxList = 4 << 20

// attrPieces are the messages in an attribute that may be encoded in several pieces.
type attrPieces struct{ tensor, graph, sparse []field }

func (d *decoder) attr(p *protoNode, f field) error {
	a := &ir.Attr{}
	x, in := extra{}, attrPieces{}
	err := d.each(f.off, f.end, func(f field) error { return d.attrField(p, a, &x, &in, f) })
	if err != nil {
		return err
	}
	a.Extra = x
	p.node.Attrs = append(p.node.Attrs, a)
	return d.attrMessages(p, a, in)
}

func (d *decoder) attrMessages(p *protoNode, a *ir.Attr, in attrPieces) (err error) {
	if in.tensor != nil {
		if a.Tensor, err = d.tensor(in.tensor); err != nil {
			return err
		}
	}
	if in.sparse != nil {
		if a.Sparse, p.more().sparse, err = d.sparse(in.sparse); err != nil {
			return err
		}
	}
	if in.graph != nil {
		r := p.more()
		r.subs = append(r.subs, protoSub{attr: a, pieces: in.graph})
	}
	return nil
}

func (d *decoder) attrField(p *protoNode, a *ir.Attr, x *extra, in *attrPieces, f field) (err error) {
	switch f.num {
	case attrName:
		return d.word(&a.Name, x, f)
	case attrType:
		if f.v == 0 || f.v > 0xff {
			return d.addField(x, f) // explicitly undefined, or newer than this program
		}
		a.Type = ir.AttrType(f.v)
		return nil
	case attrT:
		in.tensor = append(in.tensor, f)
		return nil
	case attrTensors:
		t, err := d.tensor([]field{f})
		a.Tensors = append(a.Tensors, t)
		return err
	case attrG:
		in.graph = append(in.graph, f)
		return nil
	case attrGraphs:
		r := p.more()
		r.subs = append(r.subs, protoSub{attr: a, pieces: []field{f}, listed: true})
		return nil
	case attrTypeProto, attrTypeProtos:
		a.Elided = true
	case attrSparses:
		a.Elided = true
		if _, _, err := d.sparse([]field{f}); err != nil {
			return err
		}
	case attrSparse:
		in.sparse = append(in.sparse, f)
	case attrDoc:
		return d.addDoc(x, f)
	case attrRef:
		a.Ref, err = d.string(f)
	default:
		err = d.scalar(a, f)
	}
	if err != nil {
		return err
	}
	return d.addField(x, f)
}

// scalar decodes numbers and strings, alone and in lists. The field rides along too.
func (d *decoder) scalar(a *ir.Attr, f field) (err error) {
	if f.len() > maxList {
		a.Elided = true
		return nil
	}
	switch f.num {
	case attrF:
		a.F = math.Float32frombits(uint32(f.v))
	case attrI:
		a.I = int64(f.v)
	case attrS:
		a.S, err = d.string(f)
	case attrStrings:
		return d.names(&a.Strings, f)
	case attrInts:
		return d.ints(f, func(v uint64) { a.Ints = append(a.Ints, int64(v)) })
	case attrFloats:
		return d.floats(a, f)
	}
	return err
}

func (d *decoder) floats(a *ir.Attr, f field) error {
	if f.typ == protowire.Fixed32Type {
		a.Floats = append(a.Floats, math.Float32frombits(uint32(f.v)))
		return nil
	}
	b, err := d.bytes(f.off, f.end)
	if err != nil {
		return err
	}
	for ; len(b) >= 4; b = b[4:] {
		a.Floats = append(a.Floats, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return nil
}

// lift returns the tensor of a Constant node, or nil if the node is no
// plain constant: its value may be a function's attribute, for example.
func (p *protoNode) lift() *ir.Tensor {
	n := p.node
	if !n.Op.Is("Constant") || p.ins > 0 || len(p.edges) != 1 || p.edges[0] == "" || len(n.Attrs) != 1 {
		return nil
	}
	a := n.Attrs[0]
	if a.Ref != "" {
		return nil
	}
	switch a.Name {
	case "value":
		return a.Tensor
	case "sparse_value":
		return p.more().sparse
	case "value_float":
		return constant(ir.Float, nil, ir.Floats(a.F))
	case "value_int":
		return constant(ir.Int64, nil, ir.Ints(a.I))
	case "value_floats":
		return list(a, ir.Float, len(a.Floats), ir.Floats(a.Floats...))
	case "value_ints":
		return list(a, ir.Int64, len(a.Ints), ir.Ints(a.Ints...))
	case "value_string":
		return words(nil, a.S)
	case "value_strings":
		return words([]int64{int64(len(a.Strings))}, a.Strings...)
	}
	return nil
}

func words(shape []int64, text ...string) *ir.Tensor {
	return &ir.Tensor{
		Spec:   ir.Spec{DType: ir.String, Shape: shape},
		Source: ir.Text(func() ([]string, error) { return text, nil }),
	}
}

// list is nil for a list that was too long to decode.
func list(a *ir.Attr, dt ir.DType, n int, b []byte) *ir.Tensor {
	size := int64(0)
	for _, c := range a.Extra.(extra) {
		size += c.n
	}
	if size > maxList {
		return nil
	}
	return constant(dt, []int64{int64(n)}, b)
}

func constant(dt ir.DType, shape []int64, b []byte) *ir.Tensor {
	return &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: ir.Mem(b)}
}

// String names the node in errors.
func (p *protoNode) String() string { return "node " + strconv.Quote(p.node.Label()) }
