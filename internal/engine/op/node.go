package op

import (
	"fmt"
	"maps"

	"github.com/mcompress/mcompress/ir"
)

// A Port is an input or output of a model.
type Port struct {
	Name string
	Type *ir.Type // nil where the model does not say, or where it is no tensor
}

// A Node is what an operator knows of its place in the graph and what does not change
// between runs.
type Node struct {
	ID      ir.OpID
	Label   string // names the node in messages
	Version int64  // of the operator's domain
	NumIn   int    // inputs, absent ones included
	Wanted  []bool // which outputs are read
	Const   []bool // which inputs are constants that are in memory, and were given to Prepare
	Fixed   []bool // which inputs are the same in every run too, but not in memory: they were not given to Prepare
	State   any    // what Prepare made
	Seed    uint64 // of the session, for operators that draw random numbers

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

// NumOut is the number of outputs, those that nobody reads included.
func (n *Node) NumOut() int { return len(n.Wanted) }

// IsConst reports whether input i is a constant that was, or will be, given to Prepare. Work
// must go by this and not by State, which is not there while memory is only planned.
func (n *Node) IsConst(i int) bool { return i < len(n.Const) && n.Const[i] }

// IsFixed reports whether input i is the same in every run, but read or computed for each one. Results must have
// the bits that a constant in memory leads to.
func (n *Node) IsFixed(i int) bool { return i < len(n.Fixed) && n.Fixed[i] }

// Wants reports whether output i is read.
func (n *Node) Wants(i int) bool { return i < len(n.Wanted) && n.Wanted[i] }

// With is a copy of n with one attribute more, or another one of that name.
func (n *Node) With(a *ir.Attr) *Node {
	c := *n
	c.attrs = maps.Clone(n.attrs)
	c.attrs[a.Name] = a
	return &c
}

// Has reports whether the attribute is there.
func (n *Node) Has(name string) bool { return n.attrs[name] != nil }

// Int is the integer attribute, or def.
func (n *Node) Int(name string, def int64) int64 {
	if a := n.attrs[name]; a != nil {
		return a.I
	}
	return def
}

// Bool is the integer attribute as a flag, or def.
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

// Ints is the list attribute, nil where it is absent.
func (n *Node) Ints(name string) []int64 {
	if a := n.attrs[name]; a != nil {
		return a.Ints
	}
	return nil
}

// Floats is the list attribute, nil where it is absent.
func (n *Node) Floats(name string) []float32 {
	if a := n.attrs[name]; a != nil {
		return a.Floats
	}
	return nil
}

// Texts is the list attribute, nil where it is absent.
func (n *Node) Texts(name string) []string {
	if a := n.attrs[name]; a != nil {
		return a.Strings
	}
	return nil
}

// Attrs are the attributes by name. They are only read.
func (n *Node) Attrs() map[string]*ir.Attr { return n.attrs }

// Array is the tensor attribute, nil where it is absent.
func (n *Node) Array(name string) *ir.Array { return n.arrays[name] }

// Arg is input i of in, or an error that says it is missing.
func Arg(in []*ir.Array, i int, name string) (*ir.Array, error) {
	if i >= len(in) || in[i] == nil {
		return nil, fmt.Errorf("input %s is missing", name)
	}
	return in[i], nil
}

// Opt is input i of in, nil where it is absent.
func Opt(in []*ir.Array, i int) *ir.Array {
	if i >= len(in) {
		return nil
	}
	return in[i]
}
