package engine

import (
	"bytes"
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Measurement is the memory used by a run, measured from the addresses that its steps received and from the bytes
// that they changed. It is independent of the plan.
type Measurement struct {
	Arena   int64 // bytes of the arena up to the end of the last access
	Written int64 // bytes of the arena that steps wrote
	Peak    int64 // maximum of live bytes of the arena over the steps
	At      int   // the first step with this maximum, as in Usage.Steps
	Heap    int64 // maximum of bytes outside the arena over the steps
	Inputs  int64 // bytes of the inputs
	Outputs int64 // bytes of the outputs, which are copies
}

// guardBytes is the size of the guard areas before and after the arena, which no step may write.
const guardBytes = 4 << 10

// Measure runs the model twice, on an arena filled with two different patterns: bytes that differ from one of them were
// written. Reads of unwritten bytes and writes outside the arena are errors.
func (e *Interpreter) Measure(ctx context.Context, in map[string]*ir.Array) (*Measurement, error) {
	args, err := e.arguments(in)
	if err != nil {
		return nil, err
	}
	if e.opt.PlanOnly || e.streamed > 0 {
		return nil, errors.New("memory can be measured only for a model that was opened with all of its weights in memory")
	}
	pl, err := e.prog.newPlan(unknown(args), nil, e.pool, e.account)
	if err != nil {
		return nil, err
	}
	if err := e.account.Check(op.Plus(pl.memory.Size, 2*guardBytes)); err != nil {
		return nil, pl.wrapPeak(err)
	}
	p := &probe{e: e, plan: pl, args: args, all: ir.AlignedBytes(pl.memory.Size + 2*guardBytes)}
	first, err := p.runPattern(ctx, 0x55)
	if err != nil {
		return nil, err
	}
	untouched := p.untouched(nil, 0x55)
	second, err := p.runPattern(ctx, 0xaa)
	if err != nil {
		return nil, err
	}
	if err := p.compareOutputs(first, second); err != nil {
		return nil, err
	}
	m := &Measurement{Heap: p.recorder.heap}
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
	m.Arena, m.Peak, m.At = p.recorder.liveness()
	return m, nil
}

// A probe is a plan that runs on instrumented memory.
type probe struct {
	e        *Interpreter
	plan     *plan
	args     []*ir.Array
	all      []byte          // the arena between its guards
	recorder *accessRecorder // of the last run
}

func (p *probe) arena() []byte {
	return p.all[guardBytes : len(p.all)-guardBytes : len(p.all)-guardBytes]
}

// runPattern fills the memory with a pattern and runs the plan on it.
func (p *probe) runPattern(ctx context.Context, pattern byte) (map[int]*ir.Array, error) {
	for i := range p.all {
		p.all[i] = pattern
	}
	in := p.plan.bind(p.arena(), p.e.pool)
	p.recorder = &accessRecorder{in: in, bytes: map[int]int64{}}
	outputs := map[int]bool{}
	for _, o := range p.e.prog.outputs {
		if o != absent {
			outputs[o] = true
		}
	}
	got, err := in.run(&execution{ctx: ctx, pool: p.e.pool, eval: p.e.eval, account: p.e.account, profile: p.recorder,
		maxSteps: p.e.opt.Limits.Steps}, p.args, outputs)
	if err != nil {
		return nil, err
	}
	for i, b := range p.all {
		if b != pattern && (i < guardBytes || i >= len(p.all)-guardBytes) {
			return nil, ir.Bugf("a step wrote %d bytes after the start of an arena of %d bytes", i-guardBytes,
				p.plan.memory.Size)
		}
	}
	return got, nil
}

// untouched marks the bytes of the arena that still have the pattern, among those marked before.
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

// compareOutputs compares the outputs of both runs.
func (p *probe) compareOutputs(first, second map[int]*ir.Array) error {
	if slices.ContainsFunc(p.e.prog.steps, func(s *step) bool { return s.op.Impure || s.bodies != nil }) {
		return nil
	}
	for o, a := range first {
		if b := second[o]; b == nil || !bytes.Equal(a.Data, b.Data) {
			return ir.Bugf("output %q depends on the contents of the arena before the run", p.e.prog.slots[o].name)
		}
	}
	return nil
}
