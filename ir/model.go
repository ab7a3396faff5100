package ir

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
)

// A Model is one ONNX model: a main graph and the functions its nodes may call.
type Model struct {
	IRVersion int64
	Opsets    []Opset
	Graph     *Graph
	Functions []*Function
	Meta      []Entry // metadata_props, in file order
	Extra     any     // fields of the file that are written back unchanged

	names   map[string]int // taken value names and the next suffix to try
	callees atomic.Pointer[calleeIndex]
}

// An Opset is one imported operator set.
type Opset struct {
	Domain  string
	Version int64
	Extra   any
}

// An Entry is a key and its value in metadata_props. Where Late is set it gives the
// value when the file is written; Value then only holds its place, at the same length.
type Entry struct {
	Key, Value string
	Late       func(context.Context) (string, error)
	Extra      any
}

// An OpID names an operator or a model-local function.
type OpID struct{ Domain, Type, Overload string }

// A Graph is a list of nodes, mostly in topological order, and the values it owns.
type Graph struct {
	Name            string
	Inputs, Outputs []*Value
	Outer           *Graph // the graph whose values this subgraph may read; nil for a main graph or function body
	Owner           *Node  // the node that holds this subgraph; nil likewise
	Sorted          bool   // its nodes are in topological order because Sort put them there
	Extra           any

	model       *Model
	function    *Function // set for a function's body
	consts      []*Value  // initializers and lifted Constant nodes, in file order
	stale       bool      // consts has removed ones
	first, last *Node
}

// A Function is a graph that nodes call by its OpID. It has no initializers in
// ONNX: its constants are written as Constant nodes.
type Function struct {
	ID     OpID
	Body   *Graph
	Opsets []Opset
	Extra  any
}

// A Node computes its outputs from its inputs. A nil input or output is an absent one.
type Node struct {
	Name    string
	Op      OpID
	Attrs   []*Attr
	Outputs []*Value
	Module  string // path of the module that the exporter recorded, such as encoder.layer.0.output.dense; part of Extra
	Extra   any

	inputs     []*Value
	graph      *Graph
	prev, next *Node
}

// An AttrType is numbered as ONNX's AttributeProto.AttributeType.
type AttrType uint8

// The attribute types that passes read or make.
const (
	AttrFloat   AttrType = 1
	AttrInt     AttrType = 2
	AttrString  AttrType = 3
	AttrTensor  AttrType = 4
	AttrGraph   AttrType = 5
	AttrFloats  AttrType = 6
	AttrInts    AttrType = 7
	AttrStrings AttrType = 8
	AttrTensors AttrType = 9
	AttrGraphs  AttrType = 10
	AttrSparse  AttrType = 11
)

// An Attr is one attribute of a node. Replace an attribute to change it: one that
// was read from a file is written back as it came.
type Attr struct {
	Name    string
	Type    AttrType
	F       float32
	I       int64
	S       string
	Tensor  *Tensor
	Graph   *Graph
	Floats  []float32
	Ints    []int64
	Strings []string
	Tensors []*Tensor
	Graphs  []*Graph
	Sparse  *Sparse
	Ref     string // the function attribute that it refers to
	Elided  bool   // the value is of a size or type that the ir does not hold; it rides along
	Extra   any
}

// A Sparse is a tensor in ONNX's coordinate form: Values[i] is the element at Indices[i],
// a linear index of the dense Shape.
type Sparse struct {
	Values, Indices *Tensor
	Shape           []int64
}

// A Type is the element type and shape of a value, as far as the model states them.
type Type struct {
	Elem  DType
	Shape []Dim // nil where the rank is unknown
}

// A Dim is a fixed size, or a symbol, or (N < 0 and no symbol) unknown.
type Dim struct {
	N     int64
	Param string
}

// Known reports whether d is a fixed size.
func (d Dim) Known() bool { return d.Param == "" && d.N >= 0 }

// A Value is an edge of the graph: made by one node, or an input, or a constant.
type Value struct {
	Name      string
	Type      *Type   // nil where the model does not say
	Const     *Tensor // the payload of an initializer or Constant node
	Default   *Tensor // of an input whose initializer HideDefaults hides
	Ambiguous bool    // another value of the same scope has this name
	Extra     any

	graph    *Graph
	producer *Node
	uses     []Use
	removed  bool
}

// A Use is one appearance of a value: an input of a node, also of one in a
// subgraph, or, where Node is nil, an output of Graph.
type Use struct {
	Node  *Node
	Graph *Graph
	Index int
}

// Opset is the version of domain that m imports, 0 if it does not.
func (m *Model) Opset(domain string) int64 { return opset(m.Opsets, domain) }

// Opset is the version of domain in force in g, 0 if there is none.
func (g *Graph) Opset(domain string) int64 {
	if f := g.root().function; f != nil {
		return opset(f.Opsets, domain)
	}
	return g.model.Opset(domain)
}

// opset accepts "ai.onnx" as a name of the default domain.
func opset(os []Opset, domain string) int64 {
	for _, o := range os {
		if DefaultDomain(o.Domain) && DefaultDomain(domain) || o.Domain == domain {
			return o.Version
		}
	}
	return 0
}

// DefaultDomain reports whether domain is the one of ONNX's own operators.
func DefaultDomain(domain string) bool { return domain == "" || domain == "ai.onnx" }

// Is reports whether id is the operator typ of ONNX's default domain.
func (id OpID) Is(typ string) bool { return id.Type == typ && DefaultDomain(id.Domain) }

// String is id in ONNX's text syntax: domain.Type.
func (id OpID) String() string {
	s := id.Type
	if id.Domain != "" {
		s = id.Domain + "." + s
	}
	if id.Overload != "" {
		s += ":" + id.Overload
	}
	return s
}

// Model is the model g belongs to.
func (g *Graph) Model() *Model { return g.model }

// Function is the function whose body g or its root is, or nil.
func (g *Graph) Function() *Function { return g.root().function }

// root is the outermost graph around g: a main graph or a function body.
func (g *Graph) root() *Graph {
	for g.Outer != nil {
		g = g.Outer
	}
	return g
}

// Consts are g's constants in file order, newer ones at the end.
func (g *Graph) Consts() []*Value {
	if g.stale {
		g.consts = slices.DeleteFunc(g.consts, func(v *Value) bool { return v.removed || v.Const == nil })
		g.stale = false
	}
	return g.consts
}

// Nodes ranges over g's own nodes in order. Removing the current node and
// inserting before it are safe.
func (g *Graph) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := g.first; n != nil; {
			next := n.next
			if !yield(n) {
				return
			}
			n = next
		}
	}
}

// NodeCount is the number of g's own nodes.
func (g *Graph) NodeCount() (n int) {
	for range g.Nodes() {
		n++
	}
	return n
}

// First is g's first node, nil if it has none.
func (g *Graph) First() *Node { return g.first }

// Last is g's last node, nil if it has none.
func (g *Graph) Last() *Node { return g.last }

// Graph is the graph of n, nil once it was removed.
func (n *Node) Graph() *Graph { return n.graph }

// Inputs are n's inputs; change them by SetInput.
func (n *Node) Inputs() []*Value { return n.inputs }

// Input is n's input i, nil if it is absent.
func (n *Node) Input(i int) *Value {
	if i >= len(n.inputs) {
		return nil
	}
	return n.inputs[i]
}

// Prev is the node before n in its graph, nil at the start.
func (n *Node) Prev() *Node { return n.prev }

// Next is the node after n in its graph, nil at the end.
func (n *Node) Next() *Node { return n.next }

// Attr is n's attribute of that name, or nil.
func (n *Node) Attr(name string) *Attr {
	for _, a := range n.Attrs {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Int is the integer attribute of that name, or def.
func (n *Node) Int(name string, def int64) int64 {
	if a := n.Attr(name); a != nil && a.Ref == "" {
		return a.I
	}
	return def
}

// Float is the float attribute of that name, or def.
func (n *Node) Float(name string, def float32) float32 {
	if a := n.Attr(name); a != nil && a.Ref == "" {
		return a.F
	}
	return def
}

// Label names n in messages: its name, or its operator and first output.
func (n *Node) Label() string {
	if n.Name != "" {
		return n.Name
	}
	for _, v := range n.Outputs {
		if v != nil {
			return n.Op.Type + "(" + v.Name + ")"
		}
	}
	return n.Op.Type
}

// Place names n in errors, with its operator and module: node "linear_3" (MatMul, encoder.layer.0.output.dense).
func (n *Node) Place() string { return Place(n.Label(), n.Op, n.Module) }

// Place is Node.Place of a node with another label.
func Place(label string, op OpID, module string) string {
	if module != "" {
		module = ", " + module
	}
	return fmt.Sprintf("node %q (%s%s)", label, op, module)
}

// Producer is the node that makes v, nil for inputs, constants and values that nothing makes.
func (v *Value) Producer() *Node { return v.producer }

// Graph is the graph v belongs to.
func (v *Value) Graph() *Graph { return v.graph }

// Uses are the places v is read; they follow SetInput and ReplaceUses.
func (v *Value) Uses() []Use { return v.uses }

// OnlyConsumer is the node that alone consumes v, once; nil if there are other uses or v is a graph output.
func (v *Value) OnlyConsumer() *Node {
	if len(v.uses) != 1 {
		return nil
	}
	return v.uses[0].Node
}

// Removed reports whether v's node or constant was taken out of the graph.
func (v *Value) Removed() bool { return v.removed }

// IsInput reports whether v is among its graph's inputs.
func (v *Value) IsInput() bool {
	for _, in := range v.graph.Inputs {
		if in == v {
			return true
		}
	}
	return false
}
