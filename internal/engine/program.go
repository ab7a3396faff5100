package engine

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A program is a graph ready to run: steps in order over numbered slots, one slot a value.
// Bodies of If, Loop and Scan are programs of their own, functions are inlined.
type program struct {
	slots   []slot
	steps   []*step
	inputs  []int      // slots of the graph's inputs
	outputs []int      // slots of its outputs; absent for an optional one
	types   []*ir.Type // of the outputs, as far as the model says
	// Values of the graph around a body that the body reads; empty for a main graph. Their
	// arrays follow the inputs when the body runs.
	captures []capture
	names    map[string]int // of a main graph: what Run may be asked for

	plans planCache
}

// A capture is an outer slot that a body reads, and the body's own slot for it.
type capture struct{ outer, inner int }

type slot struct {
	name  string
	konst *constant // nil for what is computed or given
	keep  bool      // outputs, and what Run may fetch
	rank  int       // of what Run is given, as the model declares it; 0 for others, and where it does not
}

// A step runs one node.
type step struct {
	*op.Node
	op      *op.Op
	in, out []int // slots, absent ones are -1
	bodies  map[string]*program
	dropped []int // inputs that Prepare made superfluous
}

const absent = -1

// A constant is a tensor that does not change between runs. Bodies share those of the
// graph around them.
type constant struct {
	tensor *ir.Tensor // where it is read from; nil for what was computed
	array  *ir.Array  // its data are nil while they are not read, and when nobody needs them any more
	uses   int        // inputs of steps, and outputs, that still need the data
	rows   int        // how many of the uses read only rows
	kept   bool       // Run may be asked for it
	stream bool       // read from the file for each run
}

// table is the constant that s reads only rows of, nil if there is none.
func (p *program) table(s *step) *constant {
	if s.op.Rows == nil || len(s.in) == 0 || s.in[0] == absent {
		return nil
	}
	k := p.slots[s.in[0]].konst
	if k == nil || !s.op.Rows(s.Node, k.array) {
		return nil
	}
	return k
}

// whole are the slots that s reads, without a table of which it reads rows from the file.
func (p *program) whole(s *step) []int {
	if k := p.table(s); k != nil && k.stream {
		return s.in[1:]
	}
	return s.in
}

// readers counts for each slot the steps that read it and the program's outputs.
func (p *program) readers() []int {
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

// producers gives for each slot the index of the step that makes it, absent for others.
func (p *program) producers() []int {
	by := make([]int, len(p.slots))
	for i := range by {
		by[i] = absent
	}
	for i, s := range p.steps {
		for _, o := range s.out {
			if o != absent {
				by[o] = i
			}
		}
	}
	return by
}

// add makes a slot.
func (p *program) add(s slot) int {
	p.slots = append(p.slots, s)
	return len(p.slots) - 1
}

// addConst makes a slot for a constant that no file holds.
func (p *program) addConst(a *ir.Array) int { return p.add(slot{konst: &constant{array: a}}) }

// each calls f for p and for every program inside it.
func (p *program) each(f func(*program) error) error {
	if err := f(p); err != nil {
		return err
	}
	for _, s := range p.steps {
		for _, name := range sortedKeys(s.bodies) {
			if err := s.bodies[name].each(f); err != nil {
				return err
			}
		}
	}
	return nil
}
