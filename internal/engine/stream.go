package engine

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// chooseStreamed marks the constants that are streamed, that is read in each run, so that the others use at most limit
// bytes. Tables of which steps read only rows come first, as streaming them is cheap, then the others by size. It
// returns the number of streamed bytes.
func chooseStreamed(consts map[*ir.Tensor]*constant, limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	var large []*constant
	held := int64(0)
	for _, k := range consts {
		if k.uses == 0 {
			continue
		}
		// All that are used, also small ones, which are never streamed.
		held += k.tensor.Bytes()
		if k.tensor.Bytes() > smallConstant && !k.fetchable {
			large = append(large, k)
		}
	}
	// By name last, so that the choice does not depend on the order of the map.
	slices.SortFunc(large, func(a, b *constant) int {
		return cmp.Or(cmp.Compare(min(a.uses-a.rows, 1), min(b.uses-b.rows, 1)),
			cmp.Compare(b.tensor.Bytes(), a.tensor.Bytes()), cmp.Compare(a.tensor.Name, b.tensor.Name))
	})
	streamed := int64(0)
	for _, k := range large {
		if held <= limit {
			break
		}
		k.stream = true
		held -= k.tensor.Bytes()
		streamed += k.tensor.Bytes()
	}
	return streamed
}

// A prefetcher reads the streamed constants of one run ahead of the steps that need them.
type prefetcher struct {
	r    *execution
	in   *instance
	next [][]int // by step: slots whose lifetime starts with the step
	busy chan error
}

// prefetch starts the prefetcher of a run.
func (r *execution) prefetch(in *instance) *prefetcher {
	return &prefetcher{r: r, in: in, next: in.plan.arrivals()}
}

// arrivals lists for each step the streamed slots whose lifetime starts with it; nil if nothing is streamed.
func (pl *plan) arrivals() [][]int {
	var out [][]int
	for b, what := range pl.blocks {
		if what.slot == absent || pl.prog.slots[what.slot].constant == nil {
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

// wait waits for the constants of step i, and starts to read those of the next one.
func (f *prefetcher) wait(i int) error {
	if f.next == nil {
		return nil
	}
	if err := f.done(); err != nil {
		return err
	}
	// Only what it needs: the rest of what arrives with it is read while it runs.
	if i == 0 { // the first step has no read-ahead
		if err := f.readSlots(f.needs(0)); err != nil {
			return err
		}
	}
	rest := slices.DeleteFunc(slices.Clone(f.next[i]),
		func(o int) bool { return i == 0 && slices.Contains(f.needs(0), o) })
	if len(rest) == 0 {
		return nil
	}
	// With a buffer, so that the goroutine ends even if nobody waits after an error.
	f.busy = make(chan error, 1)
	go func() { f.busy <- f.readSlots(rest) }()
	return nil
}

// needs lists the streamed slots among the inputs of step i.
func (f *prefetcher) needs(i int) []int {
	var out []int
	for _, o := range f.in.plan.prog.steps[i].in {
		if o != absent && slices.Contains(f.next[0], o) {
			out = append(out, o)
		}
	}
	return out
}

// done waits for pending reads.
func (f *prefetcher) done() error {
	if f.busy == nil {
		return nil
	}
	err := <-f.busy
	f.busy = nil
	return err
}

func (f *prefetcher) readSlots(slots []int) error {
	for _, o := range slots {
		t := f.in.plan.prog.slots[o].constant.tensor
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
