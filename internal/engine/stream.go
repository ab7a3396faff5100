package engine

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// spill marks the constants that are not held in memory but read for each run, so that the
// rest takes at most half of limit: the other half is for activations and for what is
// being read. Tables of which steps read only rows come first, as they cost next to nothing
// then, and the others by their size. It returns the bytes of those it marked.
func spill(consts map[*ir.Tensor]*constant, limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	var large []*constant
	held := int64(0)
	for _, k := range consts {
		if k.uses == 0 {
			continue
		}
		held += k.tensor.Bytes()
		if k.tensor.Bytes() > smallConstant && !k.kept {
			large = append(large, k)
		}
	}
	slices.SortFunc(large, func(a, b *constant) int {
		return cmp.Or(cmp.Compare(min(a.uses-a.rows, 1), min(b.uses-b.rows, 1)), cmp.Compare(b.tensor.Bytes(), a.tensor.Bytes()), cmp.Compare(a.tensor.Name, b.tensor.Name))
	})
	streamed := int64(0)
	for _, k := range large {
		if held <= limit/2 {
			break
		}
		k.stream = true
		held -= k.tensor.Bytes()
		streamed += k.tensor.Bytes()
	}
	return streamed
}

// A feed reads the streamed constants of one run ahead of the steps that need them.
type feed struct {
	r    *execution
	in   *instance
	next [][]int // by step: slots whose memory becomes theirs with the step
	busy chan error
}

// streams starts the feed for a run.
func (r *execution) streams(in *instance) *feed {
	return &feed{r: r, in: in, next: in.plan.arrivals()}
}

// arrivals lists for each step the streamed slots whose memory is theirs from then on; nil
// where nothing is streamed.
func (pl *plan) arrivals() [][]int {
	var out [][]int
	for b, what := range pl.blocks {
		if what.slot == absent || pl.prog.slots[what.slot].konst == nil {
			continue
		}
		if out == nil {
			out = make([][]int, len(pl.prog.steps))
		}
		at := pl.memory.Blocks[b].First
		out[at] = append(out[at], what.slot)
	}
	return out
}

// before waits for what step i needs, and starts to read what the next one does.
func (f *feed) before(i int) error {
	if f.next == nil {
		return nil
	}
	if err := f.done(); err != nil {
		return err
	}
	if i == 0 { // nobody has read for the first step
		if err := f.read(f.needs(0)); err != nil {
			return err
		}
	}
	rest := slices.DeleteFunc(slices.Clone(f.next[i]), func(o int) bool { return i == 0 && slices.Contains(f.needs(0), o) })
	if len(rest) == 0 {
		return nil
	}
	f.busy = make(chan error, 1)
	go func() { f.busy <- f.read(rest) }()
	return nil
}

// needs are the streamed slots among the inputs of step i.
func (f *feed) needs(i int) []int {
	var out []int
	for _, o := range f.in.plan.prog.steps[i].in {
		if o != absent && slices.Contains(f.next[0], o) {
			out = append(out, o)
		}
	}
	return out
}

// done waits for the reading that goes on.
func (f *feed) done() error {
	if f.busy == nil {
		return nil
	}
	err := <-f.busy
	f.busy = nil
	return err
}

func (f *feed) read(slots []int) error {
	for _, o := range slots {
		t := f.in.plan.prog.slots[o].konst.tensor
		r, err := f.r.eval.Open(f.r.ctx, t)
		if err == nil {
			err = ir.ReadFull(r, f.in.values[o].Data, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
