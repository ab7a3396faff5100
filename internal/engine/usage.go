package engine

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A Usage is the planned memory of one run: the run uses exactly this arena.
type Usage struct {
	Plan    *memory.Plan
	Steps   []Step
	Dynamic []string // nodes with results of unknown size: they are stored outside the arena
	Values  []Lifetime
	Outputs int64 // bytes of the session's outputs, which are copies
}

// A Lifetime is when a value in the arena is needed: from the step that computes it to the last one that reads it. Its
// block may live longer: views and results computed in place share one.
type Lifetime struct {
	Name        string
	Bytes       int64
	Block       int // index in Plan.Blocks
	First, Last int // steps
}

// A Step is one step of the plan, an executed node: several nodes of the model may be fused.
type Step struct {
	Node, Op string
	Out      []ir.Spec // types of its outputs, if known
}

// Usage plans a run with inputs of these types. Names in Plan.Blocks are those of values, and of nodes for scratch
// memory.
func (e *Interpreter) Usage(in map[string]ir.Spec) (*Usage, error) {
	return e.usage(in, e.pool)
}

// UsageWith is Usage with another number of worker threads. Scratch memory depends on it; reported figures and choices
// that affect results must not, and are those of one.
func (e *Interpreter) UsageWith(in map[string]ir.Spec, workers int) (*Usage, error) {
	pool := op.NewPool(workers)
	defer pool.Close()
	return e.usage(in, pool)
}

func (e *Interpreter) usage(in map[string]ir.Spec, pool *op.Pool) (*Usage, error) {
	pl, err := e.planFor(in, pool)
	if err != nil {
		return nil, err
	}
	u := pl.usage()
	outputs := map[string]bool{}
	for _, y := range e.outputs {
		outputs[y.Name] = true
	}
	for _, st := range u.Steps {
		for _, y := range st.Out {
			if outputs[y.Name] {
				u.Outputs += y.Bytes()
			}
		}
	}
	return u, nil
}

// Types are the types of all values that Run may fetch, as far as they follow from inputs of these types.
func (e *Interpreter) Types(in map[string]ir.Spec) (map[string]ir.Spec, error) {
	known, err := e.KnownValues(in)
	if err != nil {
		return nil, err
	}
	types := map[string]ir.Spec{}
	for name, a := range known {
		types[name] = ir.Spec{Name: name, DType: a.DType, Shape: a.Shape}
	}
	return types, nil
}

// KnownValues is Types with the elements of small values that follow from constants and shapes: axes, sizes, factors.
func (e *Interpreter) KnownValues(in map[string]ir.Spec) (map[string]*ir.Array, error) {
	pl, err := e.planFor(in, e.pool)
	if err != nil {
		return nil, err
	}
	known := map[string]*ir.Array{}
	for name, slot := range e.prog.names {
		if a := pl.values[slot]; a != nil && a.Kind == ir.Dense {
			known[name] = a
		}
	}
	return known, nil
}

// planFor plans a run with inputs of these types.
func (e *Interpreter) planFor(in map[string]ir.Spec, pool *op.Pool) (*plan, error) {
	args := make([]*ir.Array, len(e.inputs))
	for i, p := range e.inputs {
		spec, ok := in[p.Name]
		if !ok {
			return nil, fmt.Errorf("input %q is missing", p.Name)
		}
		args[i] = &ir.Array{DType: spec.DType, Shape: spec.Shape}
		if err := declared(p, args[i]); err != nil {
			return nil, fmt.Errorf("input %q: %w", p.Name, err)
		}
	}
	return e.prog.newPlan(args, nil, pool, e.account)
}

// Constants are the constants that runs read, after constant folding; packed ones are bytes. They occupy this memory
// all the time, except those that operators prepacked: see Weights.
func (e *Interpreter) Constants() []ir.Spec {
	var specs []ir.Spec
	seen := map[*constant]bool{}
	_ = e.prog.each(func(p *program) error {
		for _, s := range p.slots {
			if s.constant != nil && s.constant.uses > 0 && !seen[s.constant] {
				seen[s.constant] = true
				spec := ir.Spec{Name: s.name, DType: s.constant.array.DType, Shape: s.constant.array.Shape}
				if k := s.constant.packed; k != nil {
					spec.DType, spec.Shape = ir.Uint8, []int64{k.Bytes()}
					if sparse, ok := k.(*packedweight.Sparse); ok && e.opt.PlanOnly {
						spec.Shape[0] = sparse.Planned()
					}
				}
				specs = append(specs, spec)
			}
		}
		return nil
	})
	return specs
}

// ConstantBytes is the memory of Constants.
func (e *Interpreter) ConstantBytes() (n int64) {
	for _, c := range e.Constants() {
		n += c.Bytes()
	}
	return n
}

func (pl *plan) usage() *Usage {
	u := &Usage{Plan: pl.memory}
	for i, s := range pl.prog.steps {
		st := Step{Node: s.Label, Op: s.ID.String()}
		for _, o := range s.out {
			if o != absent && pl.values[o] != nil {
				a := pl.values[o]
				st.Out = append(st.Out, ir.Spec{Name: pl.prog.slots[o].name, DType: a.DType, Shape: a.Shape})
			}
		}
		u.Steps = append(u.Steps, st)
		if pl.modes[i] == dynamic {
			u.Dynamic = append(u.Dynamic, s.Label)
		}
	}
	u.Values = pl.lifetimes()
	return u
}

// lifetimes are those of all values in the arena.
func (pl *plan) lifetimes() []Lifetime {
	at := map[int]int{} // blocks by slot
	for b, of := range pl.blocks {
		if of.slot != absent {
			at[of.slot] = b
		}
	}
	producer := pl.prog.producers()
	var values []Lifetime
	for o, h := range pl.buffer {
		if h == absent {
			continue
		}
		b := pl.memory.Blocks[at[h]]
		l := Lifetime{Name: pl.prog.slots[o].name, Bytes: pl.values[o].Bytes(), Block: at[h], First: producer[o],
			Last: max(pl.lastRead[o], producer[o])}
		if pl.prog.slots[o].constant != nil { // streamed
			l.First, l.Last = b.First, b.Last
		}
		values = append(values, l)
	}
	return values
}
