package engine

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/memory"
)

// A Usage is the memory of one run, as planned: the run takes exactly this arena.
type Usage struct {
	Plan    *memory.Plan
	Steps   []Step
	Dynamic []string // nodes whose results the plan cannot know: they take memory of the heap
}

// A Step is one step of the plan, a node as it runs: several of the model may be fused.
type Step struct {
	Node, Op string
	Out      []ir.Spec // of what it makes, as far as it is known
}

// Usage plans a run with inputs of these types. Names in Plan.Blocks are those of values, and
// of nodes for scratch.
func (e *Interpreter) Usage(in map[string]ir.Spec) (*Usage, error) {
	arrays := map[string]*ir.Array{}
	for name, spec := range in {
		arrays[name] = &ir.Array{DType: spec.DType, Shape: spec.Shape}
	}
	args := make([]*ir.Array, len(e.inputs))
	for i, p := range e.inputs {
		if args[i] = arrays[p.Name]; args[i] == nil {
			return nil, fmt.Errorf("input %q is missing", p.Name)
		}
		if err := declared(p, args[i]); err != nil {
			return nil, fmt.Errorf("input %q: %w", p.Name, err)
		}
	}
	pl, err := e.prog.newPlan(args, e.pool)
	if err != nil {
		return nil, err
	}
	return pl.usage(), nil
}

func (pl *plan) usage() *Usage {
	u := &Usage{Plan: pl.memory}
	for i, s := range pl.prog.steps {
		st := Step{Node: s.Label, Op: s.ID.String()}
		for _, o := range s.out {
			if o != absent && pl.values[o] != nil {
				st.Out = append(st.Out, pl.values[o].Spec())
			}
		}
		u.Steps = append(u.Steps, st)
		if pl.how[i] == dynamic {
			u.Dynamic = append(u.Dynamic, s.Label)
		}
	}
	return u
}
