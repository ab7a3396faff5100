package engine

import (
	"slices"
	"unsafe"

	"github.com/mcompress/mcompress/ir"
)

// accessRecorder records the memory that each step of a main graph receives. Steps of subgraphs count for the step that
// runs them.
type accessRecorder struct {
	in     *instance
	next   int // step
	inside bool
	reads  []access
	writes []access
	bytes  map[int]int64 // outside the arena, by slot
	live   int64
	heap   int64
}

// An access is a range of the arena that a step received.
type access struct {
	step     int
	from, to int64
}

// Step is called for each step in order.
func (m *accessRecorder) Step(_ Event, run func() error) error {
	if m.inside {
		return run()
	}
	// A run skips what planning computed, and calls Step for the others only.
	for m.in.plan.modes[m.next] == precomputed {
		m.next++
	}
	i := m.next
	m.next++
	c := &m.in.calls[i]
	for _, a := range c.In {
		m.record(&m.reads, i, a)
	}
	m.inside = true
	err := run()
	m.inside = false
	// Scratch memory counts as written: its contents before the step are not read, so it is live in this step alone.
	m.writes = m.in.append(m.writes, i, c.Work)
	s := m.in.plan.prog.steps[i]
	for k, o := range s.out {
		if o != absent && s.Consumed[k] && !m.record(&m.writes, i, m.in.values[o]) && !s.op.View {
			m.bytes[o] = heapBytes(m.in.values[o])
			m.live += m.bytes[o]
		}
	}
	m.heap = max(m.heap, m.live)
	for _, o := range m.in.deadAfter[i] {
		m.live -= m.bytes[o]
		delete(m.bytes, o)
	}
	return err
}

// record adds the range of a to list, and reports whether it is in the arena.
func (m *accessRecorder) record(list *[]access, i int, a *ir.Array) bool {
	if a == nil || a.Kind != ir.Dense || !m.in.inArena(a.Data) {
		return false
	}
	*list = m.in.append(*list, i, a.Data)
	return true
}

// append adds the range of b in the arena.
func (in *instance) append(list []access, i int, b []byte) []access {
	if len(b) == 0 {
		return list
	}
	from := int64(uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&in.arena[0])))
	return append(list, access{i, from, from + int64(len(b))})
}

// liveness walks backwards through the run: bytes that a step reads are live since they were written. The arena is cut
// into cells at the bounds of all accesses.
func (m *accessRecorder) liveness() (arena, peak int64, at int) {
	var cuts []int64
	for _, a := range slices.Concat(m.reads, m.writes) {
		cuts = append(cuts, a.from, a.to)
		arena = max(arena, a.to)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	live := make([]bool, len(cuts)) // cells that a later step reads
	mark := func(list []access, step int, cells []bool, as bool) {
		// Both lists are in the order of steps.
		first, _ := slices.BinarySearchFunc(list, step, func(a access, step int) int { return a.step - step })
		for _, a := range list[first:] {
			if a.step != step {
				return
			}
			for c, _ := slices.BinarySearch(cuts, a.from); cuts[c] < a.to; c++ {
				cells[c] = as
			}
		}
	}
	for i := m.next - 1; i >= 0; i-- {
		taken := slices.Clone(live)
		mark(m.reads, i, taken, true)
		mark(m.writes, i, taken, true)
		// In this order: what a step that works in place both reads and writes is live before it.
		mark(m.writes, i, live, false)
		mark(m.reads, i, live, true)
		bytes := int64(0)
		for c, t := range taken {
			if t {
				bytes += cuts[c+1] - cuts[c]
			}
		}
		// Equal ones too, as the walk is backwards and the first step with the maximum is reported.
		if bytes >= peak {
			peak, at = bytes, i
		}
	}
	return arena, peak, at
}

// heapBytes is the memory of a including its items.
func heapBytes(a *ir.Array) int64 {
	if a == nil {
		return 0
	}
	n := int64(len(a.Data)) + heapBytes(a.Keys)
	for _, s := range a.Text {
		n += int64(len(s)) + int64(unsafe.Sizeof(s))
	}
	for _, item := range a.Items {
		n += heapBytes(item)
	}
	return n
}
