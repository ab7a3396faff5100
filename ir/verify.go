package ir

import (
	"errors"
	"fmt"
	"slices"
)

// Verify checks what every pass relies on: lists and back references agree, a node
// reads only what its scope can see, each value it reads exists, and constants have
// possible shapes. It does not check the order of nodes, as models out of order run
// in ONNX Runtime; Sort mends that. It reads no payload.
func (m *Model) Verify() error {
	if m.Opset("") == 0 && m.usesDefaultDomain() {
		return errors.New("opset_import: the default domain is missing; the model does not say which operators it means")
	}
	c := checker{uses: map[*Value]map[Use]bool{}}
	for g := range m.Graphs() {
		if err := c.graph(g); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) usesDefaultDomain() bool {
	for n := range m.Graph.Nodes() {
		if DefaultDomain(n.Op.Domain) {
			return true
		}
	}
	return false
}

// A checker verifies the graphs of one model.
type checker struct {
	uses map[*Value]map[Use]bool // of values with long lists of uses
}

func (c checker) graph(g *Graph) error {
	for _, v := range g.Consts() {
		if err := v.Const.Valid(); err != nil {
			return fmt.Errorf("initializer %q: %w", v.Name, err)
		}
		if v.producer != nil {
			return fmt.Errorf("value %q is a constant and an output of %s", v.Name, v.producer.Place())
		}
	}
	for i, v := range g.Outputs {
		if !c.hasUse(v, Use{Graph: g, Index: i}) {
			return fmt.Errorf("graph output %q is not among its value's uses", v.Name)
		}
		if err := v.exists(g); err != nil {
			return fmt.Errorf("graph output: %w", err)
		}
	}
	if err := c.nodes(g); err != nil {
		return err
	}
	return readBack(slices.Concat(g.Inputs, g.Consts()))
}

func (c checker) nodes(g *Graph) error {
	var prev *Node
	for n := range g.Nodes() {
		if n.graph != g || n.prev != prev {
			return fmt.Errorf("%s: its links do not agree with its graph", n.Place())
		}
		if err := c.node(n); err != nil {
			return fmt.Errorf("%s: %w", n.Place(), err)
		}
		prev = n
	}
	if g.last != prev {
		return fmt.Errorf("graph %q: its last node is not the end of its list", g.Name)
	}
	return nil
}

func (c checker) node(n *Node) error {
	for i, v := range n.inputs {
		if v == nil {
			continue
		}
		if !c.hasUse(v, Use{Node: n, Index: i}) {
			return fmt.Errorf("input %q does not list this use", v.Name)
		}
		if err := v.exists(n.graph); err != nil {
			return err
		}
	}
	for _, v := range n.Outputs {
		if v != nil && v.producer != n {
			return fmt.Errorf("output %q has another producer", v.Name)
		}
	}
	for g := range n.Subgraphs() {
		if g.Outer != n.graph || g.Owner != n {
			return fmt.Errorf("subgraph %q hangs in another graph or node", g.Name)
		}
	}
	return readBack(n.Outputs)
}

// longUses is the number of uses from which looking one up by a scan is slow: it
// would make Verify quadratic for a value that every node reads.
const longUses = 32

func (c checker) hasUse(v *Value, u Use) bool {
	if len(v.uses) < longUses {
		return slices.Contains(v.uses, u)
	}
	set := c.uses[v]
	if set == nil {
		set = make(map[Use]bool, len(v.uses))
		for _, u := range v.uses {
			set[u] = true
		}
		c.uses[v] = set
	}
	return set[u]
}

// readBack reports a use that does not read its value.
func readBack(vs []*Value) error {
	for _, v := range vs {
		if v == nil {
			continue
		}
		for _, u := range v.uses {
			if !u.reads(v) {
				return fmt.Errorf("value %q lists a use that does not read it", v.Name)
			}
		}
	}
	return nil
}

func (u Use) reads(v *Value) bool {
	if u.Node == nil {
		return u.Index < len(u.Graph.Outputs) && u.Graph.Outputs[u.Index] == v
	}
	return u.Node.Input(u.Index) == v
}

// exists reports a value that nothing makes, or that g cannot see.
func (v *Value) exists(g *Graph) error {
	if !v.graph.encloses(g) {
		return fmt.Errorf("input %q belongs to a graph that is not visible here", v.Name)
	}
	if v.removed || v.Const == nil && v.producer == nil && !v.IsInput() {
		return fmt.Errorf("input %q is made by no node and is no input or initializer", v.Name)
	}
	return nil
}
