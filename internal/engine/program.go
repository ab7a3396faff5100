package engine

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A program is a compiled graph: ordered steps over numbered slots, one slot per value. Subgraphs of If, Loop and Scan
// are programs of their own, functions are inlined.
type program struct {
	slots   []slot
	steps   []*step
	inputs  []int      // slots of the graph's inputs
	outputs []int      // slots of its outputs; absent for an optional one
	types   []*ir.Type // of the outputs, as far as the model declares them
	// Outer values that a subgraph reads; empty for a main graph. Their arrays follow the inputs when the subgraph
	// runs.
	captures []capture
	names    map[string]int // of a main graph: fetchable values

	plans planCache
}

// A capture is an outer slot that a subgraph reads, and the subgraph's own slot for it.
type capture struct{ outer, inner int }

type slot struct {
	name     string
	constant *constant // nil for computed values and inputs
	keep     bool      // outputs, and values that Run may fetch
	rank     int       // of an input, as declared; 0 if unknown
}

// A step runs one node.
type step struct {
	*op.Node
	op      *op.Op
	in, out []int // slots, absent ones are -1
	bodies  map[string]*program
	dropped []int // inputs that Prepare replaced
}

const absent = -1

// A constant is a tensor that does not change between runs. Subgraphs use those of the enclosing graph.
type constant struct {
	tensor    *ir.Tensor // its source; nil for computed constants
	array     *ir.Array  // its data are nil before they are read and after their last use
	uses      int        // inputs of steps, and outputs, that still need the data
	rows      int        // uses that read only rows
	fetchable bool       // Run may fetch it
	stream    bool       // read from the file in each run
	packed    op.Packed  // the constant in packed form; nil if it is dense

	counted  int64 // bytes in the account
	reserved int64 // bytes of the budget for folded results
}

// table is the constant that s reads only rows of, nil if there is none.
func (p *program) table(s *step) *constant {
	if s.op.Rows == nil || len(s.in) == 0 || s.in[0] == absent {
		return nil
	}
	k := p.slots[s.in[0]].constant
	if k == nil || !s.op.Rows(s.Node, k.array) {
		return nil
	}
	return k
}

// whole lists the slots that s reads, without a table whose rows are read from the file.
func (p *program) whole(s *step) []int {
	if k := p.table(s); k != nil && k.stream {
		return s.in[1:]
	}
	return s.in
}

// consumers counts for each slot the steps that read it and the program's outputs.
func (p *program) consumers() []int {
	n := make([]int, len(p.slots))
	for _, s := range p.steps {
		for _, i := range s.in {
			if i != absent {
				n[i]++
			}
		}
	}
	for _, i := range p.outputs {
		if i != absent {
			n[i]++
		}
	}
	return n
}

// producers returns for each slot the index of the step that writes it, absent for others.
func (p *program) producers() []int {
	by := slices.Repeat([]int{absent}, len(p.slots))
	for i, s := range p.steps {
		for _, o := range s.out {
			if o != absent {
				by[o] = i
			}
		}
	}
	return by
}

// add adds a slot.
func (p *program) add(s slot) int {
	p.slots = append(p.slots, s)
	return len(p.slots) - 1
}

// addConst adds a slot for a computed constant.
func (p *program) addConst(a *ir.Array) int { return p.add(slot{constant: &constant{array: a}}) }

// each calls f for p and for every program inside it.
func (p *program) each(f func(*program) error) error {
	if err := f(p); err != nil {
		return err
	}
	for _, s := range p.steps {
		if s.bodies == nil { // almost always
			continue
		}
		for _, name := range sortedKeys(s.bodies) {
			if err := s.bodies[name].each(f); err != nil {
				return err
			}
		}
	}
	return nil
}
