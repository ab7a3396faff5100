package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An instance is a plan with its memory, for one run at a time.
type instance struct {
	plan       *plan
	arena      []byte
	values     []*ir.Array // by slot
	template   []*ir.Array // values between runs
	arrays     []ir.Array  // values of template, without constants
	calls      []op.Call   // by step
	bodies     []map[string]*instance
	deadAfter  [][]int       // by step: dynamically sized slots whose lifetime ends with it
	fetch      map[int]bool  // slots that the current run returns
	dynamicMem dynamicMemory // of the current run
}

// bind returns an instance of a plan with this arena.
func (pl *plan) bind(arena []byte, pool *op.Pool) *instance {
	slots, steps := len(pl.values), len(pl.prog.steps)
	in := &instance{
		arena: arena, arrays: make([]ir.Array, slots), template: make([]*ir.Array, slots),
		values: make([]*ir.Array, slots),
		calls:  make([]op.Call, steps), bodies: make([]map[string]*instance, steps),
	}
	for i, s := range pl.prog.steps {
		in.calls[i] = op.Call{Node: s.Node, In: make([]*ir.Array, len(s.in)), Out: make([]*ir.Array, len(s.out)),
			Pool: pool}
	}
	in.rebind(pl)
	return in
}

// rebind makes in, which is idle, an instance of pl, a plan of the same program for its arena.
func (in *instance) rebind(pl *plan) {
	in.plan, in.deadAfter = pl, pl.lastUses()
	clear(in.template)
	clear(in.bodies)
	// Arrays of values in the arena have fixed addresses as long as the instance has this plan, so a run sets up none
	// of them.
	for o, v := range pl.values {
		switch r := pl.place[o]; {
		case v == nil:
		case r.bytes > 0:
			in.arrays[o] = ir.Array{DType: v.DType, Shape: v.Shape, Data: in.region(r)}
			in.template[o] = &in.arrays[o]
		case op.IsKnown(v), pl.prog.slots[o].constant != nil:
			in.template[o] = v
		default:
			in.arrays[o] = ir.Array{DType: v.DType, Shape: v.Shape} // a view of an input of the run
			in.template[o] = &in.arrays[o]
		}
	}
	for i := range in.calls {
		// What a call keeps follows from shapes, which are others in this plan.
		in.calls[i].Work, in.calls[i].Kept = in.region(pl.scratch[i]), nil
	}
	in.reset()
}

func (in *instance) region(r region) []byte { return in.arena[r.off : r.off+r.bytes : r.off+r.bytes] }

// lastUses lists for each step the dynamically sized slots without later consumers.
func (pl *plan) lastUses() [][]int {
	out := make([][]int, len(pl.prog.steps))
	producer := pl.prog.producers()
	for o, i := range pl.lastRead {
		i = max(i, producer[o])
		if i != absent && pl.place[o].bytes == 0 && pl.prog.slots[o].constant == nil {
			out[i] = append(out[i], o)
		}
	}
	return out
}

// reset releases the values of a run; the caller's arrays are not retained.
func (in *instance) reset() {
	copy(in.values, in.template)
	in.fetch = nil
	in.dynamicMem.close()
}

// run computes the program for inputs, followed by captures, of the plan's types. Values of the slots in fetch are
// copied when they are computed, so that fetching does not extend lifetimes. The values of outputs are valid until the
// next run.
func (in *instance) run(r *execution, args []*ir.Array, fetch map[int]bool) (map[int]*ir.Array, error) {
	prog := in.plan.prog
	copy(in.values, in.template)
	in.fetch, in.dynamicMem = fetch, dynamicMemory{account: r.account}
	// The arrays of the caller are used where they are, and never written.
	for i, slot := range prog.fed() {
		in.values[slot] = args[i]
	}
	got := map[int]*ir.Array{}
	var refused error
	take := func(s *step, o int) {
		if o != absent && fetch[o] && got[o] == nil && in.values[o] != nil && refused == nil {
			// The step wrote into the array of the caller itself: nothing is left to copy.
			if in.plan.sole[o] && in.values[o] != in.template[o] { // allocated for the caller
				got[o] = in.values[o]
				return
			}
			got[o], refused = r.fetched(s, o, in.values[o])
		}
	}
	for _, o := range slices.Sorted(maps.Keys(fetch)) {
		// No step computes these in this run.
		if prog.slots[o].constant != nil || in.plan.values[o] != nil && op.IsKnown(in.plan.values[o]) {
			take(nil, o)
		}
	}
	for _, slot := range prog.fed() {
		take(nil, slot)
	}
	load := r.prefetch(in)
	defer func() { _ = load.done() }() // after an error too: the memory will be another run's
	for i, s := range prog.steps {
		// A step is the unit of cancellation; operators that take long check the context themselves.
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if err := load.wait(i); err != nil {
			return nil, err
		}
		if in.plan.modes[i] == precomputed {
			continue
		}
		if err := in.runStep(r, i, s); err != nil {
			return nil, err
		}
		// Now, as a later step may use their memory.
		for _, o := range s.out {
			take(s, o)
		}
		if refused != nil {
			return nil, refused
		}
		for _, o := range in.deadAfter[i] {
			if prog.names != nil || !prog.isOutput(o) { // outputs of a main graph are copied
				in.values[o] = in.template[o]
				in.dynamicMem.release(o)
			}
		}
	}
	return got, errors.Join(refused, load.done())
}

func (p *program) isOutput(slot int) bool {
	for _, o := range p.outputs {
		if o == slot {
			return true
		}
	}
	return false
}

// runStep runs step i.
func (in *instance) runStep(r *execution, i int, s *step) error {
	c := &in.calls[i]
	c.Ctx, c.Account = r.ctx, r.account
	for k, j := range s.in {
		c.In[k] = nil
		if j == absent {
			continue
		}
		if c.In[k] = in.values[j]; c.In[k] == nil {
			return s.wrap(fmt.Errorf("input %d has no value", k))
		}
	}
	if k := in.plan.prog.table(s); k != nil && k.stream {
		var err error
		if c.Rows, err = r.eval.Open(r.ctx, k.tensor); err != nil {
			return s.wrap(err)
		}
	}
	// Before the step runs, so that a sequence that grows ends the run before it is copied once more.
	if err := r.count(c); err != nil {
		return s.wrap(err)
	}
	if r.profile == nil {
		return in.computeStep(r, i, s, c)
	}
	alloc, freed := in.plan.turnover(i)
	e := Event{Node: s.Label, Op: s.ID.String(), Index: i, Alloc: alloc, Freed: freed, Dynamic: in.dynamicMem.bytes,
		Stale: in.stale(i)}
	if in.plan.prog.names == nil {
		e.Index = absent
	}
	return r.profile.Step(e, func() error { return in.computeStep(r, i, s, c) })
}

func (in *instance) computeStep(r *execution, i int, s *step, c *op.Call) error {
	if s.bodies != nil {
		return in.runControl(r, i, s, c)
	}
	if in.plan.modes[i] != placed {
		return in.caused(i, s, in.dynamic(s, c))
	}
	for k, o := range s.out {
		c.Out[k] = nil
		if o != absent && s.Consumed[k] {
			// A value that shares its memory with another one has to be where the plan puts it: views and in-place
			// steps read it there.
			if in.fetch[o] && r.direct && in.plan.sole[o] {
				var err error
				if in.values[o], err = r.allocate(s, in.values[o]); err != nil {
					return err
				}
			}
			c.Out[k] = in.values[o]
		}
	}
	// The memory of the input, which may be an array of the caller in this run.
	if s.op.View {
		c.Out[0].Data, c.Out[0].Text = c.In[0].Data, c.In[0].Text
		return nil
	}
	return in.caused(i, s, s.run(c))
}

// dynamic runs a step with outputs outside the arena.
func (in *instance) dynamic(s *step, c *op.Call) error {
	out, err := runAlone(s, op.Call{Ctx: c.Ctx, In: c.In, Pool: c.Pool, Rows: c.Rows, Account: c.Account})
	if err != nil {
		return err
	}
	for k, o := range s.out {
		if o == absent || !s.Consumed[k] {
			continue
		}
		if out[k] == nil {
			return s.wrap(fmt.Errorf("output %d was not computed", k))
		}
		if err := in.store(s, o, out[k]); err != nil {
			return err
		}
	}
	return nil
}

// store makes a the value of slot o, outside the arena.
func (in *instance) store(s *step, o int, a *ir.Array) error {
	in.values[o] = in.detach(a)
	if s.op.View {
		return nil // it shares its input's memory
	}
	if err := in.dynamicMem.reserve(o, op.Held(in.values[o])); err != nil {
		return s.wrap(err)
	}
	return nil
}

// detach returns a, or a copy if it, or an item of it, is in the arena, whose bytes will be reused.
func (in *instance) detach(a *ir.Array) *ir.Array {
	// A view of a value in the arena would change with the next step that gets the memory.
	if in.inArena(a.Data) {
		return a.Clone()
	}
	for i, item := range a.Items {
		a.Items[i] = in.detach(item)
	}
	return a
}

func (in *instance) inArena(b []byte) bool {
	if len(b) == 0 || len(in.arena) == 0 {
		return false
	}
	at, start := uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&in.arena[0]))
	return at >= start && at < start+uintptr(len(in.arena))
}

// stale is the number of bytes outside the arena at step i that were read for the last time before the previous step.
func (in *instance) stale(i int) int64 {
	var bytes int64
	for o, n := range in.dynamicMem.bySlot {
		if in.plan.lastRead[o] < i-1 && in.plan.producer(o) < i-1 {
			bytes += n
		}
	}
	return bytes
}

// producer is the step that computes slot o.
func (pl *plan) producer(o int) int {
	return slices.IndexFunc(pl.prog.steps, func(s *step) bool { return slices.Contains(s.out, o) })
}

// turnover is the number of bytes whose lifetime starts, and ends, with step i.
func (pl *plan) turnover(i int) (alloc, freed int64) {
	pl.turnovers.Do(func() {
		pl.alloc, pl.freed = make([]int64, len(pl.prog.steps)), make([]int64, len(pl.prog.steps))
		for _, b := range pl.memory.Blocks {
			pl.alloc[b.First] += b.Bytes
			pl.freed[b.Last] += b.Bytes
		}
	})
	return pl.alloc[i], pl.freed[i]
}
