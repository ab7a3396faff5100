package ir

import (
	"fmt"
	"math"
	"strings"
)

// The limits of function calls, beyond which a graph cannot be expanded: most programs that run a model copy the body
// of a function to each of its calls.
const (
	maxCallDepth = 64
	maxExpansion = 1 << 22 // nodes, with their edges, attributes and names; real models have fewer than 100,000
)

// Callee is the function of the model that n calls, nil if n is an operator.
func (n *Node) Callee() *Function { return n.graph.model.function(n.Op) }

// function is the function called id, nil if there is none.
func (m *Model) function(id OpID) *Function {
	if len(m.Functions) == 0 {
		return nil
	}
	index := m.callees.Load()
	if index == nil || index.functions != len(m.Functions) {
		index = &calleeIndex{functions: len(m.Functions), byID: make(map[OpID]*Function, len(m.Functions))}
		for _, f := range m.Functions {
			// The first of several functions of a name counts.
			if index.byID[f.ID.canonical()] == nil {
				index.byID[f.ID.canonical()] = f
			}
		}
		m.callees.Store(index)
	}
	return index.byID[id.canonical()]
}

// A calleeIndex finds functions by name; it is valid until one is added or removed.
type calleeIndex struct {
	functions int
	byID      map[OpID]*Function
}

// canonical is id with the one name of the default domain.
func (id OpID) canonical() OpID {
	if DefaultDomain(id.Domain) {
		id.Domain = ""
	}
	return id
}

// VerifyCalls checks that m can be expanded by copying the body of each function to its calls: no function calls
// itself, directly or through others, calls are not nested deeper than 64, and the result is not much larger than real
// models.
func (m *Model) VerifyCalls() error {
	if len(m.Functions) == 0 {
		return nil
	}
	x := expander{bodies: map[*Function]*body{}}
	for _, f := range m.Functions {
		if _, err := x.function(f); err != nil {
			return err
		}
	}
	// Nodes of the main graph are stored in the file: only what its calls add to them is limited.
	b, err := x.graph(m.Graph, false)
	if err == nil && b.size > maxExpansion {
		err = errExpansion
	}
	return err
}

// An expander measures function bodies with the functions that they call in place of the calls.
type expander struct {
	bodies map[*Function]*body
	path   []*Function // active calls
}

// A body is the size of a function.
type body struct {
	expansion
	depth  int // of calls
	active bool
}

// An expansion is a number of nodes, and their size: the number of nodes, edges and attributes, with one for each 64
// bytes of a name or tensor.
type expansion struct{ nodes, size int64 }

func (x *expander) function(f *Function) (*body, error) {
	b := x.bodies[f]
	switch {
	case b != nil && b.active:
		return nil, fmt.Errorf("function %q calls itself: %s", f.ID, x.cycle(f))
	case b != nil:
		return b, nil
	case len(x.path) >= maxCallDepth:
		return nil, tooDeep(x.path[0])
	}
	b = &body{active: true}
	x.bodies[f] = b
	x.path = append(x.path, f)
	made, err := x.graph(f.Body, true)
	if err != nil {
		return nil, err
	}
	x.path = x.path[:len(x.path)-1]
	made.active = false
	*b = *made
	if b.depth > maxCallDepth {
		return nil, tooDeep(f)
	}
	if b.size > maxExpansion {
		return nil, fmt.Errorf("function %q: %w", f.ID, errExpansion)
	}
	return b, nil
}

func tooDeep(f *Function) error {
	return fmt.Errorf("function %q: calls are nested deeper than %d levels", f.ID, maxCallDepth)
}

var errExpansion = fmt.Errorf("function calls expand to more than %d nodes and edges", maxExpansion)

// cycle is the calls from f to itself.
func (x *expander) cycle(f *Function) string {
	for x.path[0] != f {
		x.path = x.path[1:]
	}
	names := make([]string, 0, len(x.path)+1)
	for _, g := range append(x.path, f) {
		names = append(names, fmt.Sprintf("%q", g.ID))
	}
	return strings.Join(names, " → ")
}

// graph measures g and its subgraphs; without own, only the functions that they call.
func (x *expander) graph(g *Graph, own bool) (*body, error) {
	b := &body{depth: 1}
	for n := range g.Nodes() {
		if own {
			b.add(expansion{1, n.weight()})
		}
		for s := range n.Subgraphs() {
			inner, err := x.graph(s, own)
			if err != nil {
				return nil, err
			}
			b.add(inner.expansion)
			b.depth = max(b.depth, inner.depth)
		}
		f := n.Callee()
		if f == nil {
			continue
		}
		called, err := x.function(f)
		if err != nil {
			return nil, err
		}
		// The names of the copies start with that of the call.
		b.add(expansion{called.nodes, called.size + called.nodes*(int64(len(n.Label()))/64)})
		b.depth = max(b.depth, called.depth+1)
	}
	return b, nil
}

// weight is the size of n.
func (n *Node) weight() int64 {
	w := int64(1 + len(n.inputs) + len(n.Outputs) + len(n.Attrs) + len(n.Label())/64)
	for _, a := range n.Attrs {
		if a.Tensor != nil {
			w += a.Tensor.Bytes() / 64
		}
	}
	return w
}

func (e *expansion) add(f expansion) {
	// Functions that call each other twice double the size with each level: it is cut before it overflows.
	e.nodes = min(e.nodes+f.nodes, math.MaxInt32)
	e.size = min(e.size+f.size, math.MaxInt32)
}
