package engine

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// aheadBytes is the size up to which a step is computed while planning, where its inputs are known
// by then: shapes, and what is computed from them.
const aheadBytes = 4 << 10

// A plan says for inputs of certain types what each step makes and where that lies.
type plan struct {
	prog   *program
	values []*ir.Array // types by slot, and data where they are known; nil where only the run will tell
	how    []mode      // of each step
	bodies []map[string]*plan
	place  []region // by slot; Bytes 0 for what is not in the arena
	work   []region // scratch by step
	memory *memory.Plan
	blocks []block // what each of memory's blocks is for
}

// A mode says what a run does for a step.
type mode uint8

const (
	dynamic mode = iota // asks for shapes, and takes memory from the heap
	placed              // runs on memory of the arena
	ahead               // nothing: it was computed while planning
)

// A region is a part of the arena.
type region struct{ off, bytes int64 }

// A block is for a slot, or for the scratch of a step if slot is absent.
type block struct{ slot, step int }

// A planner makes one plan.
type planner struct {
	*plan
	pool *op.Pool
	home []int // by slot: the slot whose memory it has; absent for what is not in the arena
	last []int // by slot: the last step that reads it
	born []int // by home: the step that makes it
	dies []int // by home: the last step that reads any slot in it
	work []int64
}

// newPlan plans p for inputs, and captures after them, of these types.
func (p *program) newPlan(in []*ir.Array, pool *op.Pool) (*plan, error) {
	n := len(p.slots)
	pl := &planner{
		plan: &plan{prog: p, values: make([]*ir.Array, n), how: make([]mode, len(p.steps)), bodies: make([]map[string]*plan, len(p.steps))},
		pool: pool, home: make([]int, n), last: p.lastReads(), born: make([]int, n), dies: make([]int, n), work: make([]int64, len(p.steps)),
	}
	for i, s := range p.slots {
		pl.home[i] = absent
		if s.konst != nil {
			pl.values[i] = s.konst.array
		}
	}
	for i, slot := range p.fed() {
		pl.values[slot] = in[i]
	}
	pl.stream()
	for i, s := range p.steps {
		if err := pl.step(i, s); err != nil {
			return nil, err
		}
	}
	return pl.plan, pl.put()
}

// fed are the slots that whoever runs p fills: inputs, then captures.
func (p *program) fed() []int {
	slots := append([]int(nil), p.inputs...)
	for _, c := range p.captures {
		slots = append(slots, c.inner)
	}
	return slots
}

// lastReads is the last step that reads each slot. Outputs of a body are read when it has
// ended, those of a main graph are copied the moment they are made.
func (p *program) lastReads() []int {
	last := make([]int, len(p.slots))
	for i := range last {
		last[i] = absent
	}
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

// stream gives memory to constants that are read for each run: from the step before the
// first that needs them, so that reading and computing overlap, to the last.
func (pl *planner) stream() {
	for i, s := range pl.prog.steps {
		for _, j := range pl.prog.whole(s) {
			if j == absent || pl.prog.slots[j].konst == nil || !pl.prog.slots[j].konst.stream {
				continue
			}
			if pl.home[j] != j {
				pl.home[j], pl.born[j] = j, max(i-1, 0)
			}
			pl.dies[j] = i
		}
	}
}

// step decides what the run does for step i.
func (pl *planner) step(i int, s *step) error {
	in, ok := pl.inputs(s)
	if !ok {
		return nil
	}
	if s.bodies != nil {
		return pl.control(i, s, in)
	}
	if done, err := pl.ahead(i, s, in); done || err != nil {
		return err
	}
	if s.op.Shape == nil {
		return nil
	}
	specs, err := s.shape(in)
	if err == op.ErrUnknown {
		return nil
	}
	if err != nil {
		return err
	}
	if s.op.Work != nil {
		if pl.work[i], err = s.scratch(in, pl.pool.Workers()); err != nil {
			return err
		}
	}
	return pl.declare(i, s, specs)
}

// inputs are the types of what s reads, false if one is not known yet.
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

// ahead runs s now if all that it needs is known and little.
func (pl *planner) ahead(i int, s *step, in []*ir.Array) (bool, error) {
	if s.op.Impure || len(in) == 0 && s.op.Shape == nil {
		return false, nil
	}
	bytes := int64(0)
	for _, a := range in {
		if a == nil || s.op.OfShape {
			continue
		}
		if bytes += a.Bytes(); !op.Known(a) || bytes > aheadBytes {
			return false, nil
		}
	}
	if s.op.Shape != nil {
		specs, err := s.shape(in)
		if err != nil {
			return false, nil // it will be said in its place
		}
		for _, spec := range specs {
			if spec.Bytes() > aheadBytes {
				return false, nil
			}
		}
	}
	out, err := runAlone(s, op.Call{In: in, Pool: pl.pool})
	if err != nil {
		return false, nil
	}
	for k, o := range s.out {
		if o != absent {
			pl.values[o] = out[k]
		}
	}
	pl.how[i] = ahead
	return true, nil
}

// declare notes the types of the outputs of step i and whose memory they have.
func (pl *planner) declare(i int, s *step, specs []ir.Spec) error {
	if len(specs) < len(s.out) {
		return s.wrap(fmt.Errorf("it has %d outputs, but the operator gives %d", len(s.out), len(specs)))
	}
	pl.how[i] = placed
	for k, o := range s.out {
		if o == absent || !s.Wanted[k] {
			continue
		}
		pl.values[o] = &ir.Array{DType: specs[k].DType, Shape: specs[k].Shape}
		if specs[k].DType == ir.String && !s.op.View {
			pl.how[i] = dynamic // strings live on the heap
		}
		pl.settle(i, s, k, o)
	}
	return nil
}

// settle finds the memory for output k of step i: another value's, or its own.
func (pl *planner) settle(i int, s *step, k, o int) {
	h := o
	if k == 0 && s.op.View {
		h = pl.home[s.in[0]]
	} else if k == 0 {
		if j := pl.inPlace(i, s, o); j != absent {
			h = j
		}
	}
	if h == absent {
		return
	}
	if h == o {
		pl.born[o], pl.dies[o] = i, i
	}
	pl.home[o] = h
	pl.dies[h] = max(pl.dies[h], pl.last[o], i)
}

// inPlace is the home that output 0 of step i can take over, or absent.
func (pl *planner) inPlace(i int, s *step, o int) int {
	for _, k := range s.op.InPlace {
		if k >= len(s.in) || s.in[k] == absent {
			continue
		}
		h := pl.home[s.in[k]]
		if h == absent || pl.dies[h] > i || pl.prog.slots[h].konst != nil {
			continue
		}
		if pl.values[s.in[k]].Bytes() == pl.values[o].Bytes() && pl.alone(s, k, h) {
			return h
		}
	}
	return absent
}

// alone reports whether no other input of s lies in home h, unless it is the same value.
func (pl *planner) alone(s *step, k, h int) bool {
	for _, j := range s.in {
		if j != absent && j != s.in[k] && pl.home[j] == h {
			return false
		}
	}
	return true
}

// put gives every home and all scratch a place in the arena.
func (pl *planner) put() (err error) {
	var blocks []memory.Block
	for o := range pl.prog.slots {
		if pl.home[o] != o {
			continue
		}
		kind := memory.Activation
		if pl.prog.slots[o].konst != nil {
			kind = memory.Weight
		}
		blocks = append(blocks, memory.Block{Name: pl.prog.slots[o].name, Kind: kind, Bytes: pl.values[o].Bytes(), First: pl.born[o], Last: pl.dies[o]})
		pl.blocks = append(pl.blocks, block{o, pl.born[o]})
	}
	for i, n := range pl.work {
		if n > 0 {
			blocks = append(blocks, memory.Block{Name: pl.prog.steps[i].Label, Kind: memory.Scratch, Bytes: n, First: i, Last: i})
			pl.blocks = append(pl.blocks, block{absent, i})
		}
	}
	if pl.memory, err = memory.Place(blocks); err != nil {
		return err
	}
	pl.spread()
	return nil
}

// spread notes for each slot and step where its memory is.
func (pl *planner) spread() {
	pl.place = make([]region, len(pl.prog.slots))
	pl.plan.work = make([]region, len(pl.prog.steps))
	for b, what := range pl.blocks {
		r := region{pl.memory.Offsets[b], pl.memory.Blocks[b].Bytes}
		if what.slot == absent {
			pl.plan.work[what.step] = r
		} else {
			pl.place[what.slot] = r
		}
	}
	for o, h := range pl.home {
		if h != absent {
			pl.place[o] = region{pl.place[h].off, pl.values[o].Bytes()}
		}
	}
}
