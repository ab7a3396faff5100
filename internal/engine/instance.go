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

// An instance is a plan on memory: one run at a time uses it.
type instance struct {
	plan   *plan
	arena  []byte
	values []*ir.Array // by slot
	fixed  []*ir.Array // what values are when no run goes on
	calls  []op.Call   // by step
	bodies []map[string]*instance
	frees  [][]int // by step: slots on the heap that die with it
	heap   heap    // of the run that goes on
}

// bind puts a plan on an arena of the size that it says.
func (pl *plan) bind(arena []byte, pool *op.Pool) *instance {
	in := &instance{plan: pl, arena: arena, calls: make([]op.Call, len(pl.prog.steps)), bodies: make([]map[string]*instance, len(pl.prog.steps))}
	in.fixed = make([]*ir.Array, len(pl.values))
	for o, v := range pl.values {
		switch r := pl.place[o]; {
		case v == nil:
		case r.bytes > 0:
			in.fixed[o] = &ir.Array{DType: v.DType, Shape: v.Shape, Data: arena[r.off : r.off+r.bytes : r.off+r.bytes]}
		case op.Known(v), pl.prog.slots[o].konst != nil:
			in.fixed[o] = v
		default:
			in.fixed[o] = &ir.Array{DType: v.DType, Shape: v.Shape} // a view of what comes with the run
		}
	}
	in.values = append([]*ir.Array(nil), in.fixed...)
	for i, s := range pl.prog.steps {
		r := pl.work[i]
		in.calls[i] = op.Call{Node: s.Node, In: make([]*ir.Array, len(s.in)), Out: make([]*ir.Array, len(s.out)), Work: arena[r.off : r.off+r.bytes : r.off+r.bytes], Pool: pool}
	}
	in.frees = pl.frees()
	return in
}

// frees lists for each step the slots of the heap that nobody reads after it.
func (pl *plan) frees() [][]int {
	out := make([][]int, len(pl.prog.steps))
	for o, i := range pl.prog.lastReads() {
		if i != absent && pl.place[o].bytes == 0 && pl.prog.slots[o].konst == nil {
			out[i] = append(out[i], o)
		}
	}
	return out
}

// run computes the program for inputs, and captures after them, of the plan's types. What
// it returns of the slots in fetch is copied the moment it is made, so that fetching keeps
// nothing alive. The values of outputs stay valid until the next run.
func (in *instance) run(r *execution, args []*ir.Array, fetch map[int]bool) (map[int]*ir.Array, error) {
	prog := in.plan.prog
	copy(in.values, in.fixed)
	in.heap = heap{limit: r.limit}
	for i, slot := range prog.fed() {
		in.values[slot] = args[i]
	}
	got := map[int]*ir.Array{}
	var refused error
	take := func(o int) {
		if o != absent && fetch[o] && got[o] == nil && in.values[o] != nil && refused == nil {
			got[o], refused = r.taken(o, in.values[o])
		}
	}
	for _, o := range slices.Sorted(maps.Keys(fetch)) {
		if prog.slots[o].konst != nil || in.plan.values[o] != nil && op.Known(in.plan.values[o]) {
			take(o)
		}
	}
	for _, slot := range prog.fed() {
		take(slot)
	}
	load := r.streams(in)
	defer func() { _ = load.done() }() // after an error too: the memory will be another run's
	for i, s := range prog.steps {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if err := load.before(i); err != nil {
			return nil, err
		}
		if in.plan.how[i] == ahead {
			continue
		}
		if err := in.step(r, i, s); err != nil {
			return nil, err
		}
		for _, o := range s.out {
			take(o)
		}
		if refused != nil {
			return nil, refused
		}
		for _, o := range in.frees[i] {
			if !prog.isOutput(o) {
				in.values[o] = in.fixed[o]
				in.heap.free(o)
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

// step runs step i.
func (in *instance) step(r *execution, i int, s *step) error {
	c := &in.calls[i]
	c.Ctx = r.ctx
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
	if r.profile == nil {
		return in.compute(r, i, s, c)
	}
	alloc, freed := in.plan.turnover(i)
	return r.profile.Step(Event{Node: s.Label, Op: s.ID.String(), Alloc: alloc, Freed: freed}, func() error { return in.compute(r, i, s, c) })
}

func (in *instance) compute(r *execution, i int, s *step, c *op.Call) error {
	if s.bodies != nil {
		return in.control(r, i, s, c)
	}
	if in.plan.how[i] != placed {
		return in.dynamic(s, c)
	}
	for k, o := range s.out {
		c.Out[k] = nil
		if o != absent && s.Wanted[k] {
			c.Out[k] = in.values[o]
		}
	}
	if s.op.View {
		c.Out[0].Data, c.Out[0].Text = c.In[0].Data, c.In[0].Text
		return nil
	}
	return s.run(c)
}

// dynamic runs a step on memory of the heap.
func (in *instance) dynamic(s *step, c *op.Call) error {
	if err := in.heap.foresee(s, c); err != nil {
		return err
	}
	out, err := runAlone(s, op.Call{Ctx: c.Ctx, In: c.In, Pool: c.Pool, Rows: c.Rows})
	if err != nil {
		return err
	}
	for k, o := range s.out {
		if o == absent || !s.Wanted[k] {
			continue
		}
		if out[k] == nil {
			return s.wrap(fmt.Errorf("output %d was not made", k))
		}
		if err := in.keep(s, o, out[k]); err != nil {
			return err
		}
	}
	return nil
}

// keep makes a the value of slot o, on the heap.
func (in *instance) keep(s *step, o int, a *ir.Array) error {
	in.values[o] = in.detach(a)
	if s.op.View {
		return nil // it is its input's memory
	}
	return in.heap.take(s, o, heapBytes(in.values[o]))
}

// detach returns a, or a copy where it, or something in it, lies in the arena, whose bytes
// will soon be something else's.
func (in *instance) detach(a *ir.Array) *ir.Array {
	if in.holds(a.Data) {
		return a.Clone()
	}
	for i, item := range a.Items {
		a.Items[i] = in.detach(item)
	}
	return a
}

func (in *instance) holds(b []byte) bool {
	if len(b) == 0 || len(in.arena) == 0 {
		return false
	}
	at, start := uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&in.arena[0]))
	return at >= start && at < start+uintptr(len(in.arena))
}

// turnover is the bytes of blocks that begin and end with step i.
func (pl *plan) turnover(i int) (alloc, freed int64) {
	for _, b := range pl.memory.Blocks {
		if b.First == i {
			alloc += b.Bytes
		}
		if b.Last == i {
			freed += b.Bytes
		}
	}
	return alloc, freed
}
