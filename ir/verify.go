package ir

import (
	"errors"
	"fmt"
)

// Verify checks what every pass relies on: lists and back references agree, a node
// reads only what its scope can see, each value it reads exists, and constants have
// possible shapes. It does not check the order of nodes, as models out of order run
// in ONNX Runtime; Sort mends that. It reads no payload.
func (m *Model) Verify() error {
	if m.Opset("") == 0 && m.usesDefaultDomain() {
		return errors.New("opset_import: the default domain is missing; the model does not say which operators it means")
	}
	for g := range m.Graphs() {
		if err := g.verify(); err != nil {
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

func (g *Graph) verify() error {
	for _, v := range g.consts {
		if err := v.Const.Valid(); err != nil {
			return fmt.Errorf("initializer %q: %w", v.Name, err)
		}
		if v.producer != nil {
			return fmt.Errorf("value %q is a constant and an output of node %q", v.Name, v.producer.Label())
		}
	}
	for i, v := range g.Outputs {
		if !v.hasUse(Use{Graph: g, Index: i}) {
			return fmt.Errorf("graph output %q is not among its value's uses", v.Name)
		}
		if err := v.exists(g); err != nil {
			return fmt.Errorf("graph output: %w", err)
		}
	}
	var prev *Node
	for n := range g.Nodes() {
		if n.graph != g || n.prev != prev {
			return fmt.Errorf("node %q: its links do not agree with its graph", n.Label())
		}
		if err := n.verify(); err != nil {
			return fmt.Errorf("node %q: %w", n.Label(), err)
		}
		prev = n
	}
	return nil
}

func (n *Node) verify() error {
	for i, v := range n.inputs {
		if v == nil {
			continue
		}
		if !v.hasUse(Use{Node: n, Index: i}) {
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
		if g.Outer != n.graph {
			return fmt.Errorf("subgraph %q hangs in another graph", g.Name)
		}
	}
	return nil
}

// hasUse looks from the end: recent uses are asked for most, and a list may be long.
func (v *Value) hasUse(u Use) bool {
	for i := len(v.uses) - 1; i >= 0; i-- {
		if v.uses[i] == u {
			return true
		}
	}
	return false
}

// exists reports a value that nothing makes, or that g cannot see.
func (v *Value) exists(g *Graph) error {
	if !v.graph.Encloses(g) {
		return fmt.Errorf("input %q belongs to a graph that is not visible here", v.Name)
	}
	if v.Const == nil && v.producer == nil && !v.IsInput() {
		return fmt.Errorf("input %q is made by no node and is no input or initializer", v.Name)
	}
	return nil
}
