package op

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// A Port is an input or output of a model.
type Port struct {
	Name string
	Type *ir.Type // nil if the model does not declare it, or if it is not a tensor
}

// A Node is the static part of a node: its attributes and what else does not change between runs.
type Node struct {
	ID       ir.OpID
	Label    string // names the node in errors
	Module   string // path of the node's module; empty if it is not known
	Version  int64  // of the operator's domain
	NumIn    int    // number of inputs, absent ones included
	Consumed []bool // outputs with consumers
	Const    []bool // inputs that are constants in memory, passed to Prepare
	Fixed    []bool // inputs that are the same in every run, but not in memory: they were not passed to Prepare
	State    any    // result of Prepare
	Packed   Packed // a constant input in packed form, which has no data; nil if there is none
	Seed     uint64 // of the session, for random operators

	// input 0, and output 0, is stored with channels last: see Op.ChannelsLast. Its shape has channels first
	// nevertheless
	LastIn, LastOut bool

	attrs  map[string]*ir.Attr
	arrays map[string]*ir.Array
}

// NewNode returns a node with these attributes. arrays holds the tensors among them.
func NewNode(id ir.OpID, version int64, attrs []*ir.Attr, arrays map[string]*ir.Array) *Node {
	n := &Node{ID: id, Label: id.Type, Version: version, attrs: map[string]*ir.Attr{}, arrays: arrays}
	for _, a := range attrs {
		n.attrs[a.Name] = a
	}
	return n
}

// NumOut is the number of outputs, including those without consumers.
func (n *Node) NumOut() int { return len(n.Consumed) }

// IsConst reports whether input i is a constant that was, or will be, passed to Prepare. Work must depend on this and
// not on State, which is nil while memory is only planned.
func (n *Node) IsConst(i int) bool { return i < len(n.Const) && n.Const[i] }

// IsFixed reports whether input i is the same in every run, but read or computed in each one. Results must be
// bit-identical to those for a constant in memory.
func (n *Node) IsFixed(i int) bool { return i < len(n.Fixed) && n.Fixed[i] }

// HasConsumer reports whether output i has a consumer.
func (n *Node) HasConsumer(i int) bool { return i < len(n.Consumed) && n.Consumed[i] }

// Has reports whether the attribute is present.
func (n *Node) Has(name string) bool { return n.attrs[name] != nil }

// Int is the integer attribute, or def.
func (n *Node) Int(name string, def int64) int64 {
	if a := n.attrs[name]; a != nil {
		return a.I
	}
	return def
}

// Bool is the integer attribute as a bool, or def.
func (n *Node) Bool(name string, def bool) bool {
	if a := n.attrs[name]; a != nil {
		return a.I != 0
	}
	return def
}

// Float is the float attribute, or def.
func (n *Node) Float(name string, def float32) float32 {
	if a := n.attrs[name]; a != nil {
		return a.F
	}
	return def
}

// Text is the string attribute, or def.
func (n *Node) Text(name, def string) string {
	if a := n.attrs[name]; a != nil {
		return a.S
	}
	return def
}

// Ints is the list attribute, nil if absent.
func (n *Node) Ints(name string) []int64 {
	if a := n.attrs[name]; a != nil {
		return a.Ints
	}
	return nil
}

// Floats is the list attribute, nil if absent.
func (n *Node) Floats(name string) []float32 {
	if a := n.attrs[name]; a != nil {
		return a.Floats
	}
	return nil
}

// Texts is the list attribute, nil if absent.
func (n *Node) Texts(name string) []string {
	if a := n.attrs[name]; a != nil {
		return a.Strings
	}
	return nil
}

// Attrs are the attributes by name, for reading only.
func (n *Node) Attrs() map[string]*ir.Attr { return n.attrs }

// Array is the tensor attribute, nil if absent.
func (n *Node) Array(name string) *ir.Array { return n.arrays[name] }

// Arg is input i of in, or an error that it is missing.
func Arg(in []*ir.Array, i int, name string) (*ir.Array, error) {
	if i >= len(in) || in[i] == nil {
		return nil, fmt.Errorf("input %s is missing", name)
	}
	return in[i], nil
}

// Tensor is input i of in, or an error if it is missing or not a tensor of a valid shape.
func Tensor(in []*ir.Array, i int, name string) (*ir.Array, error) {
	a, err := Arg(in, i, name)
	if err != nil {
		return nil, err
	}
	if a.Kind != ir.Dense {
		return nil, fmt.Errorf("input %s is %s, want a tensor", name, a)
	}
	if err := a.Spec().Valid(); err != nil {
		return nil, fmt.Errorf("input %s: %w", name, err)
	}
	return a, nil
}

// Opt is input i of in, nil if absent.
func Opt(in []*ir.Array, i int) *ir.Array {
	if i >= len(in) {
		return nil
	}
	return in[i]
}
