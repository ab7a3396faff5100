package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// maxPrecomputed is the maximum size of steps that are computed while planning, if their inputs are known by then:
// shapes, and values computed from them.
const maxPrecomputed = 4 << 10

// A plan is the memory plan for inputs of certain types: the types of all values and the offsets of the outputs of each
// step.
type plan struct {
	prog     *program
	values   []*ir.Array // types by slot, and data if known; nil if known at run time only
	modes    []mode      // by step
	bodies   []map[string]*plan
	place    []region // by slot; Bytes is 0 outside the arena
	sole     []bool   // by slot: it is in the arena, and no other slot is in its memory
	scratch  []region // scratch memory by step
	memory   *memory.Plan
	capacity *memory.Plan // the blocks as they were placed, perhaps for an earlier plan: those of memory are not larger
	blocks   []block      // the purpose of each of memory's blocks

	buffer   []int // by slot: the slot whose memory it uses; absent outside the arena
	lastRead []int // by slot: the last step that reads it

	turnovers    sync.Once // computes the next fields
	alloc, freed []int64   // by step: the bytes whose lifetime starts, and ends, with it
}

// A mode is the way in which a run executes a step.
type mode uint8

const (
	dynamic     mode = iota // shapes are inferred at run time, memory is allocated outside the arena
	placed                  // runs on memory of the arena
	precomputed             // already computed while planning
)

// A region is a range of the arena.
type region struct{ off, bytes int64 }

// A block is the memory of a slot, or the scratch memory of a step if slot is absent.
type block struct{ slot, step int }

// A planner makes one plan.
type planner struct {
	*plan
	before    *plan // of earlier types, whose parts it reuses; may be nil
	pool      *op.Pool
	account   *op.Account
	firstStep []int   // by buffer: the first step of its lifetime
	lastStep  []int   // by buffer: the last step that reads any slot in it
	offset    []int64 // by slot: where it begins in its buffer
	scratch   []int64
}

// newPlan plans p for inputs, followed by captures, of these types. It reuses what it can of the plan before, which may
// be nil, so that a plan for the next token of a sequence is cheap.
func (p *program) newPlan(in []*ir.Array, before *plan, pool *op.Pool, account *op.Account) (*plan, error) {
	n := len(p.slots)
	pl := &planner{
		plan: &plan{
			prog: p, values: make([]*ir.Array, n), modes: make([]mode, len(p.steps)),
			bodies: make([]map[string]*plan, len(p.steps)),
			buffer: make([]int, n), lastRead: p.lastReads(),
		},
		before: before, pool: pool, account: account, firstStep: make([]int, n), lastStep: make([]int, n),
		offset: make([]int64, n), scratch: make([]int64, len(p.steps)),
	}
	// Constants are outside the arena; streamed ones get a buffer below.
	for i, s := range p.slots {
		pl.buffer[i] = absent
		if s.constant != nil {
			pl.values[i] = s.constant.array
		}
	}
	for i, slot := range p.fed() {
		pl.values[slot] = in[i]
	}
	// Before steps: a view of a streamed constant is in its buffer.
	pl.stream()
	for i, s := range p.steps {
		if err := pl.planStep(i, s); err != nil {
			return nil, err
		}
	}
	// After steps, as it needs all lifetimes; before offsets are assigned, as it merges buffers.
	pl.concatenate()
	return pl.plan, pl.layout()
}

// fed are the slots that the caller fills: inputs, then captures.
func (p *program) fed() []int {
	slots := append([]int(nil), p.inputs...)
	for _, c := range p.captures {
		slots = append(slots, c.inner)
	}
	return slots
}

// lastReads is the last step that reads each slot. Outputs of a subgraph are read after its last step, those of a main
// graph are copied when they are computed.
func (p *program) lastReads() []int {
	last := slices.Repeat([]int{absent}, len(p.slots))
	for i, s := range p.steps {
		for _, j := range s.in {
			if j != absent {
				last[j] = i
			}
		}
	}
	if p.names != nil {
		return last
	}
	for _, o := range p.outputs {
		if o != absent {
			last[o] = len(p.steps) - 1
		}
	}
	return last
}

// stream assigns memory to streamed constants: their lifetime starts one step before the first that needs them, so that
// reading and computing overlap, and ends with the last.
func (pl *planner) stream() {
	for i, s := range pl.prog.steps {
		for _, j := range pl.prog.whole(s) {
			if j == absent || pl.prog.slots[j].constant == nil || !pl.prog.slots[j].constant.stream {
				continue
			}
			if pl.buffer[j] != j {
				// The first step has no step before it to read ahead in: the prefetcher waits there.
				pl.buffer[j], pl.firstStep[j] = j, max(i-1, 0)
			}
			pl.lastStep[j] = i
		}
	}
}

// planStep selects the mode of step i.
func (pl *planner) planStep(i int, s *step) error {
	in, ok := pl.inputs(s)
	if !ok {
		return nil
	}
	if s.bodies != nil {
		return pl.planControl(i, s, in)
	}
	// First, as it calls no shape function.
	if pl.repeat(i, s, in) {
		return nil
	}
	// Before Shape: Reshape and Slice have a type only if the shapes that they read are computed.
	if done, err := pl.precompute(i, s, in); done || err != nil {
		return err
	}
	if s.op.Shape == nil {
		return nil
	}
	specs, err := s.shape(in)
	// The type depends on data of the run: the step is dynamic, and so is what depends on its size.
	if errors.Is(err, op.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.op.Work != nil {
		if pl.scratch[i], err = s.scratch(in, pl.pool.Workers()); err != nil {
			return err
		}
	}
	return pl.declare(i, s, specs)
}

// repeat plans step i as the plan before did, if its inputs have the same types.
func (pl *planner) repeat(i int, s *step, in []*ir.Array) bool {
	if pl.before == nil || pl.before.modes[i] != placed {
		return false
	}
	for k, j := range s.in {
		if j != absent && !sameType(in[k], pl.before.values[j]) {
			return false
		}
	}
	pl.modes[i], pl.scratch[i] = placed, pl.before.scratch[i].bytes
	for k, o := range s.out {
		if o != absent && s.Consumed[k] {
			pl.values[o] = pl.before.values[o]
			pl.assign(i, s, k, o)
		}
	}
	return true
}

// sameType reports whether a planner cannot distinguish a and b: they have one type, and no data or the same.
func sameType(a, b *ir.Array) bool {
	return a == b || b != nil && !op.IsKnown(a) && !op.IsKnown(b) && a.DType == b.DType &&
		slices.Equal(a.Shape, b.Shape)
}

// inputs are the types of the inputs of s, false if one is still unknown.
func (pl *planner) inputs(s *step) ([]*ir.Array, bool) {
	in := make([]*ir.Array, len(s.in))
	for k, j := range s.in {
		if j == absent {
			continue
		}
		if in[k] = pl.values[j]; in[k] == nil || in[k].Kind != ir.Dense {
			return nil, false
		}
	}
	return in, true
}

// precompute runs s now if its inputs are known and small.
func (pl *planner) precompute(i int, s *step, in []*ir.Array) (bool, error) {
	// Another run must get other random numbers.
	if s.op.Impure || len(in) == 0 && s.op.Shape == nil {
		return false, nil
	}
	bytes := int64(0)
	for _, a := range in {
		if a == nil || s.op.OfShape {
			continue
		}
		if bytes += max(a.Bytes(), textBytes(a)); !op.IsKnown(a) || bytes > maxPrecomputed {
			return false, nil
		}
	}
	if s.op.Shape != nil {
		specs, err := s.shape(in)
		if err != nil {
			return false, nil // reported when it runs
		}
		for _, spec := range specs {
			if op.Size(spec) > maxPrecomputed {
				return false, nil
			}
		}
	}
	out, err := runAlone(s, op.Call{In: in, Pool: pl.pool, Account: pl.account})
	if err != nil {
		return false, nil
	}
	for k, o := range s.out {
		if o != absent {
			pl.values[o] = out[k]
		}
	}
	pl.modes[i] = precomputed
	return true, nil
}

// textBytes is the size of a String tensor with its text; 0 for other types.
func textBytes(a *ir.Array) int64 {
	if a.DType != ir.String {
		return 0
	}
	return op.Held(a)
}

// declare records the types of the outputs of step i and their buffers.
func (pl *planner) declare(i int, s *step, specs []ir.Spec) error {
	if len(specs) < len(s.out) {
		return s.wrap(fmt.Errorf("%d outputs, but the operator returns %d", len(s.out), len(specs)))
	}
	pl.modes[i] = placed
	for k, o := range s.out {
		if o == absent || !s.Consumed[k] {
			continue
		}
		pl.values[o] = &ir.Array{DType: specs[k].DType, Shape: specs[k].Shape}
		// The garbage collector does not look for pointers in the arena.
		if specs[k].DType == ir.String && !s.op.View {
			pl.modes[i] = dynamic // strings are stored outside the arena
		}
		pl.assign(i, s, k, o)
	}
	return nil
}

// assign selects the buffer of output k of step i: that of another value (view or in-place), or a new one.
func (pl *planner) assign(i int, s *step, k, o int) {
	h := o
	// Also absent: a view of a value outside the arena is outside.
	if k == 0 && s.op.View {
		h = pl.buffer[s.in[0]]
	} else if k == 0 {
		if j := pl.inPlace(i, s, o); j != absent {
			h = j
		}
	}
	if h == absent {
		return
	}
	if h == o {
		pl.firstStep[o], pl.lastStep[o] = i, i
	}
	pl.buffer[o] = h
	pl.lastStep[h] = max(pl.lastStep[h], pl.lastRead[o], i)
}

// inPlace is the buffer that output 0 of step i can reuse, or absent.
func (pl *planner) inPlace(i int, s *step, o int) int {
	for _, k := range s.op.InPlace {
		if k >= len(s.in) || s.in[k] == absent {
			continue
		}
		h := pl.buffer[s.in[k]]
		// The buffer, not the value: another view of it may be read later.
		if h == absent || pl.lastStep[h] > i || pl.prog.slots[h].constant != nil {
			continue
		}
		// An input that is broadcast is smaller, and is read again after its first elements were overwritten.
		if pl.values[s.in[k]].Bytes() == pl.values[o].Bytes() && pl.exclusive(s, k, h) {
			return h
		}
	}
	return absent
}

// exclusive reports whether no other input of s shares buffer h, unless it is the same value.
func (pl *planner) exclusive(s *step, k, h int) bool {
	for _, j := range s.in {
		if j != absent && j != s.in[k] && pl.buffer[j] == h {
			return false
		}
	}
	return true
}

// layout places all buffers and scratch memory in the arena.
func (pl *planner) layout() (err error) {
	count := 2 * len(pl.prog.steps) // mostly, each step has one output and scratch memory
	blocks := make([]memory.Block, 0, count)
	pl.blocks = make([]block, 0, count)
	for o := range pl.prog.slots {
		if pl.buffer[o] != o {
			continue
		}
		kind := memory.Activation
		if pl.prog.slots[o].constant != nil {
			kind = memory.Weight
		}
		blocks = append(blocks, memory.Block{Name: pl.prog.slots[o].name, Kind: kind, Bytes: pl.values[o].Bytes(),
			First: pl.firstStep[o], Last: pl.lastStep[o]})
		pl.blocks = append(pl.blocks, block{o, pl.firstStep[o]})
	}
	for i, n := range pl.scratch {
		if n > 0 {
			blocks = append(blocks, memory.Block{Name: pl.prog.steps[i].Label, Kind: memory.Scratch, Bytes: n,
				First: i, Last: i})
			pl.blocks = append(pl.blocks, block{absent, i})
		}
	}
	var capacity *memory.Plan
	// With the offsets of the plan before, its arena can be used on, and no memory is allocated for a token.
	if pl.before != nil {
		capacity = pl.before.capacity
	}
	if pl.memory, pl.capacity, err = memory.PlaceNext(capacity, blocks); err != nil {
		return err
	}
	pl.regions()
	return nil
}

// regions records the range of the arena of each slot and step, and the slots that share none.
func (pl *planner) regions() {
	pl.place = make([]region, len(pl.prog.slots))
	pl.plan.scratch = make([]region, len(pl.prog.steps))
	for b, what := range pl.blocks {
		r := region{pl.memory.Offsets[b], pl.memory.Blocks[b].Bytes}
		if what.slot == absent {
			pl.plan.scratch[what.step] = r
		} else {
			pl.place[what.slot] = r
		}
	}
	sharers := make([]int, len(pl.prog.slots))
	for o, h := range pl.buffer {
		if h != absent {
			pl.place[o] = region{pl.place[h].off + pl.offset[o], pl.values[o].Bytes()}
			sharers[h]++
		}
	}
	pl.sole = make([]bool, len(sharers))
	for o := range pl.sole {
		// A streamed constant is in the arena, but is not computed there.
		pl.sole[o] = sharers[o] == 1 && pl.place[o].bytes > 0 && pl.prog.slots[o].constant == nil
	}
}

// wrapPeak adds the first node at the peak of the plan to an error about its memory.
func (pl *plan) wrapPeak(err error) error {
	line, invalid := memory.NewTimeline(pl.memory.Blocks, len(pl.prog.steps))
	if invalid != nil || len(line.Peaks) == 0 {
		return err
	}
	return pl.prog.steps[line.Peaks[0]].wrap(err)
}
