// Package layout computes the effect of storing images channels last (NHWC) instead of channels first (NCHW), the
// layout of ONNX's operators: transposes that are added or removed, and bytes that convolutions copy (im2col). It
// counts bytes and does not estimate speed.
//
// It is independent of operators: the caller assigns a Role to each node.
package layout

import "fmt"

// A Graph is the part of a model whose layouts matter. It has no weights and other constants: they are transposed once,
// when the model is loaded.
type Graph struct {
	Values []Value
	Nodes  []Node
}

// A Value is an input of the graph or an output of a node.
type Value struct {
	Name   string
	Bytes  int64
	Same   bool // both layouts are the same bytes: it has one channel, or one pixel
	Output bool // output of the graph, in its declared layout
}

// A Node has inputs and outputs, as indices of values.
type Node struct {
	Name            string
	Role            Role
	Inputs, Outputs []int
	Unfolds         *Window // over its first input; nil without im2col
}

// A Role is the dependence of a node on layouts.
type Role uint8

// The roles.
const (
	Breaking Role = iota // depends on the order of axes: Reshape, Flatten, Gemm, and unknown operators
	// computes on channels and pixels: Conv, pools, BatchNormalization, Resize. Runs channels last
	Sensitive
	Agnostic // same result in either layout, except for axis attributes: Relu, Add, Concat
	ToLast   // a Transpose of channels first to channels last: perm 0, 2, …, n-1, 1
	ToFirst  // a Transpose of channels last to channels first: perm 0, n-1, 1, …, n-2
	roles
)

func (r Role) moves() bool { return r == ToLast || r == ToFirst }

// check returns an error for an invalid graph.
func (g *Graph) check() error {
	made := make([]bool, len(g.Values))
	for _, n := range g.Nodes {
		if n.Role >= roles {
			return fmt.Errorf("layout: node %q: unknown role %d", n.Name, n.Role)
		}
		if n.Role.moves() && (len(n.Inputs) != 1 || len(n.Outputs) != 1) {
			return fmt.Errorf("layout: node %q: a transpose has one input and one output, not %d and %d", n.Name,
				len(n.Inputs), len(n.Outputs))
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

// values iterates over the inputs and then the outputs of n.
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
