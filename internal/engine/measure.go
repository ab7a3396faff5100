package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Measurement is the memory that a run took, seen from the addresses that its steps were
// given and from the bytes that they left behind. It shares nothing with the plan.
type Measurement struct {
	Arena   int64 // bytes of the arena that steps were given: up to where the last one ends
	Written int64 // bytes of it that steps wrote
	Peak    int64 // the most bytes of it at one step that steps were given and that were still to be read
	At      int   // the first step with so many, as in Usage.Steps
	Heap    int64 // the most bytes of results outside the arena at one step
	Inputs  int64 // bytes of what Run is given
	Outputs int64 // bytes of what Run returns, which are copies
}

// guardBytes lie before and behind the arena. No step may write there.
const guardBytes = 4 << 10

// Measure runs the model on an arena full of one pattern, and again with another one: what
// differs from one of them was written. That steps read what nobody wrote, or write outside of
// the arena, is an error.
func (e *Interpreter) Measure(ctx context.Context, in map[string]*ir.Array) (*Measurement, error) {
	args, err := e.arguments(in)
	if err != nil {
		return nil, err
	}
	if e.opt.PlanOnly || e.streamed > 0 {
		return nil, errors.New("memory is measured on a model that was opened with all of its weights in memory")
	}
	pl, err := e.prog.newPlan(unknown(args), e.pool)
	if err != nil {
		return nil, err
	}
	p := &probe{e: e, plan: pl, args: args, all: ir.AlignedBytes(pl.memory.Size + 2*guardBytes)}
	first, err := p.run(ctx, 0x55)
	if err != nil {
		return nil, err
	}
	untouched := p.untouched(nil, 0x55)
	second, err := p.run(ctx, 0xaa)
	if err != nil {
		return nil, err
	}
	if err := p.same(first, second); err != nil {
		return nil, err
	}
	m := &Measurement{Heap: p.meter.heap}
	m.Written = pl.memory.Size
	for _, marks := range p.untouched(untouched, 0xaa) {
		m.Written -= int64(bits.OnesCount64(marks))
	}
	for _, a := range args {
		m.Inputs += heapBytes(a)
	}
	for _, a := range second {
		m.Outputs += heapBytes(a)
	}
	m.Arena, m.Peak, m.At = p.meter.sum()
	return m, nil
}

// A probe is a plan that runs on memory which it then looks at.
type probe struct {
	e     *Interpreter
	plan  *plan
	args  []*ir.Array
	all   []byte // the arena between its guards
	meter *meter // of the last run
}

func (p *probe) arena() []byte {
	return p.all[guardBytes : len(p.all)-guardBytes : len(p.all)-guardBytes]
}

// run fills memory with a pattern and runs the plan on it.
func (p *probe) run(ctx context.Context, pattern byte) (map[int]*ir.Array, error) {
	for i := range p.all {
		p.all[i] = pattern
	}
	in := p.plan.bind(p.arena(), p.e.pool)
	p.meter = &meter{in: in, bytes: map[int]int64{}}
	outputs := map[int]bool{}
	for _, o := range p.e.prog.outputs {
		if o != absent {
			outputs[o] = true
		}
	}
	got, err := in.run(&execution{ctx: ctx, pool: p.e.pool, eval: p.e.eval, profile: p.meter}, p.args, outputs)
	if err != nil {
		return nil, err
	}
	for i, b := range p.all {
		if b != pattern && (i < guardBytes || i >= len(p.all)-guardBytes) {
			return nil, fmt.Errorf("a bug in the engine: a step wrote %d bytes behind the start of an arena of %d", i-guardBytes, p.plan.memory.Size)
		}
	}
	return got, nil
}

// untouched marks the bytes of the arena that still are the pattern, of those that were
// marked before.
func (p *probe) untouched(before []uint64, pattern byte) []uint64 {
	arena := p.arena()
	marks := make([]uint64, (len(arena)+63)/64)
	for i, b := range arena {
		if b == pattern && (before == nil || before[i/64]>>(i%64)&1 == 1) {
			marks[i/64] |= 1 << (i % 64)
		}
	}
	return marks
}

// same compares the outputs of both runs.
func (p *probe) same(first, second map[int]*ir.Array) error {
	if slices.ContainsFunc(p.e.prog.steps, func(s *step) bool { return s.op.Impure || s.bodies != nil }) {
		return nil
	}
	for o, a := range first {
		if b := second[o]; b == nil || !bytes.Equal(a.Data, b.Data) {
			return fmt.Errorf("a bug in the engine: output %q depends on what was in the arena before the run", p.e.prog.slots[o].name)
		}
	}
	return nil
}
