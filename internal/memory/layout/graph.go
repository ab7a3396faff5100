// Package layout counts what a model would gain or lose if its images lay channels last
// (NHWC) instead of channels first (NCHW), which is how ONNX's operators are defined:
// transposes that come and go, and what convolutions copy. Bytes are counted, and no
// speed is guessed.
//
// It knows roles and not operators: who has a model says which node is of which role.
package layout

import "fmt"

// A Graph is the part of a model that layouts are about. Weights and other constants are
// not in it: they are transposed once, when the model is loaded.
type Graph struct {
	Values []Value
	Nodes  []Node
}

// A Value is what a node, or who runs the graph, hands on.
type Value struct {
	Name   string
	Bytes  int64
	Same   bool // both layouts are the same bytes: it has one channel, or one pixel
	Output bool // who runs the graph reads it, and in the layout that it is declared in
}

// A Node reads and writes values, by their positions.
type Node struct {
	Name            string
	Role            Role
	Inputs, Outputs []int
	Unfolds         *Window // over its first input; nil if it copies no patches
}

// A Role says what a node thinks of layouts.
type Role uint8

// Roles of nodes.
const (
	Breaking  Role = iota // reads axes where they stand: Reshape, Flatten, Gemm, and whatever is not known
	Sensitive             // computes on channels and pixels: Conv, pools, BatchNormalization, Resize. It would be channels last
	Agnostic              // does the same in either layout, if an axis is renamed: Relu, Add, Concat
	ToLast                // a Transpose of channels first to channels last: perm 0, 2, …, n-1, 1
	ToFirst               // a Transpose of channels last to channels first: perm 0, n-1, 1, …, n-2
	roles
)

func (r Role) moves() bool { return r == ToLast || r == ToFirst }

// check finds what is not a graph.
func (g *Graph) check() error {
	made := make([]bool, len(g.Values))
	for _, n := range g.Nodes {
		if n.Role >= roles {
			return fmt.Errorf("layout: node %q: role %d is not known", n.Name, n.Role)
		}
		if n.Role.moves() && (len(n.Inputs) != 1 || len(n.Outputs) != 1) {
			return fmt.Errorf("layout: node %q: a transpose has one input and one output, not %d and %d", n.Name, len(n.Inputs), len(n.Outputs))
		}
		for v := range n.values() {
			if v < 0 || v >= len(g.Values) {
				return fmt.Errorf("layout: node %q: value %d of %d", n.Name, v, len(g.Values))
			}
		}
		for _, v := range n.Outputs {
			if made[v] {
				return fmt.Errorf("layout: node %q: value %q has another producer", n.Name, g.Values[v].Name)
			}
			made[v] = true
		}
	}
	return nil
}

// values are what n reads and then what it writes.
func (n *Node) values() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for _, list := range [][]int{n.Inputs, n.Outputs} {
			for _, v := range list {
				if !yield(v) {
					return
				}
			}
		}
	}
}
