package engine

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// dynamicMemory counts the results of one program outside the arena, whose sizes are known at run time only. Data shared by several
// results, such as a sequence and its items, is counted for each.
type dynamicMemory struct {
	limit  int64 // bytes; 0 for no limit
	bytes  int64
	bySlot map[int]int64 // bytes by slot
}

// check is an error if n more bytes exceed the limit.
func (h *dynamicMemory) check(n int64) error {
	if h.limit <= 0 || n <= h.limit-h.bytes {
		return nil
	}
	return fmt.Errorf("results would use %d bytes in addition to %d bytes of other dynamically sized results; the memory limit is %d", n, h.bytes, h.limit)
}

// checkStep is an error if the outputs of s for the inputs of c would exceed the limit, as far as their size is known before allocation.
func (h *dynamicMemory) checkStep(s *step, c *op.Call) error {
	if h.limit <= 0 || s.op.Shape == nil || s.op.View {
		return nil
	}
	specs, err := s.shape(c.In)
	if err != nil {
		return nil // reported when s runs
	}
	need := int64(0)
	if s.op.Work != nil {
		if need, err = s.scratch(c.In, c.Pool.Workers()); err != nil {
			return err
		}
	}
	for i, spec := range specs {
		if i >= len(s.out) || s.out[i] == absent {
			continue
		}
		if need += spec.Bytes(); need > h.limit {
			break // before it overflows
		}
	}
	if err := h.check(need); err != nil {
		return s.wrap(err)
	}
	return nil
}

// reserve counts n bytes for slot o, an output of s.
func (h *dynamicMemory) reserve(s *step, o int, n int64) error {
	if h.limit <= 0 {
		return nil
	}
	if err := h.check(n - h.bySlot[o]); err != nil {
		return s.wrap(err)
	}
	if h.bySlot == nil {
		h.bySlot = map[int]int64{}
	}
	h.bytes += n - h.bySlot[o]
	h.bySlot[o] = n
	return nil
}

// release discounts slot o.
func (h *dynamicMemory) release(o int) {
	h.bytes -= h.bySlot[o]
	delete(h.bySlot, o)
}
