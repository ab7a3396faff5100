package engine

import "github.com/mcompress/mcompress/internal/engine/op"

// dynamicMemory counts the values of one instance outside the arena, whose sizes are known at run time only.
type dynamicMemory struct {
	account *op.Account
	bytes   int64
	bySlot  map[int]int64 // bytes by slot
}

// reserve counts n bytes for slot o.
func (h *dynamicMemory) reserve(o int, n int64) error {
	if err := h.account.Take(n - h.bySlot[o]); err != nil {
		return err
	}
	if h.bySlot == nil {
		h.bySlot = map[int]int64{}
	}
	h.bytes += max(n-h.bySlot[o], 0)
	h.bySlot[o] = max(n, h.bySlot[o])
	return nil
}

// release discounts slot o.
func (h *dynamicMemory) release(o int) {
	h.account.Release(h.bySlot[o])
	h.bytes -= h.bySlot[o]
	delete(h.bySlot, o)
}

// close discounts all slots.
func (h *dynamicMemory) close() {
	h.account.Release(h.bytes)
	h.bytes, h.bySlot = 0, nil
}
