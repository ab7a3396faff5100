package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
)

// floor returns a lower bound of the arena of a planned step if these of its converted activations were stored in
// float32, 0 if none is known: each would be live from its computation to its last use in the backward pass, its other
// form never, and other blocks as in the plan. At the first and the last step of a value that may share memory with an
// operand, it is not counted.
func (st *step) floor(names []string) int64 {
	values := map[string]engine.Lifetime{}
	for _, v := range st.usage.Values {
		values[v.Name] = v
	}
	live := make([]int64, len(st.usage.Steps))
	changed := map[int][]lifetime{} // of the activations in float32, by block
	replaced, converting := map[string]bool{}, map[int]bool{}
	for _, name := range names {
		f, ok := st.stored.forms[name]
		if !ok { // operators compute on float16
			return 0
		}
		v, stored, loaded := values[name], values[f.stored.Name], values[f.loaded.Name]
		if v.Name == "" || stored.Name == "" || loaded.Name == "" {
			return 0
		}
		l := lifetime{v.First + 1, loaded.Last - 1}
		l.addBytes(live, v.Bytes)
		for _, o := range []engine.Lifetime{v, stored, loaded} {
			changed[o.Block] = append(changed[o.Block], l)
			replaced[o.Name] = true
		}
		converting[stored.First], converting[loaded.First] = true, true
	}
	others := map[int][]lifetime{} // of other values, by block
	for _, v := range st.usage.Values {
		if !replaced[v.Name] {
			others[v.Block] = append(others[v.Block], lifetime{v.First + 1, v.Last - 1})
		}
	}
	for i, b := range st.usage.Plan.Blocks {
		whole := lifetime{b.First, b.Last}
		switch {
		// Of a conversion that there would not be.
		case b.Kind == memory.Scratch && converting[b.First]:
		case changed[i] == nil:
			whole.addBytes(live, b.Bytes)
		default:
			for t := b.First; t <= b.Last; t++ {
				// Still needed where another value of the block is live, unless a changed one is, whose bytes are counted
				// already.
				if at := (lifetime{t, t}); at.in(others[i]) && !at.in(changed[i]) {
					live[t] += b.Bytes
				}
			}
		}
	}
	return slices.Max(live)
}

// A lifetime is the steps from first to last.
type lifetime struct{ first, last int }

// addBytes adds bytes to the live bytes of each step.
func (l lifetime) addBytes(live []int64, bytes int64) {
	for t := l.first; t <= l.last; t++ {
		live[t] += bytes
	}
}

// in reports whether one of some lifetimes contains l.
func (l lifetime) in(some []lifetime) bool {
	return slices.ContainsFunc(some, func(o lifetime) bool { return o.first <= l.first && l.last <= o.last })
}
