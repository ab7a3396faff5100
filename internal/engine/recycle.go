package engine

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Recycle lets later runs return results in the memory of these arrays, which the caller no longer uses. A caller that
// recycles the states of a sequence, which grow by a token, saves their allocation and collection. It may be called
// during runs.
func (e *Interpreter) Recycle(arrays ...*ir.Array) {
	for _, a := range arrays {
		if a != nil && cap(a.Data) > 0 && e.account.Take(int64(cap(a.Data))) == nil {
			e.recycled.put(a.Data[:cap(a.Data)], 2*len(e.outputs), e.account)
		}
	}
}

// A recyclePool is the memory of recycled results. It is counted by the session's account.
type recyclePool struct {
	mu     sync.Mutex
	grows  bool // results were recycled: new ones have memory to grow
	blocks [][]byte
}

// put adds a block, which is counted, and releases the oldest beyond limit. Memory that is not aligned or already there
// is released.
func (r *recyclePool) put(block []byte, limit int, account *op.Account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	start := unsafe.SliceData(block)
	same := func(b []byte) bool { return unsafe.SliceData(b) == start }
	// The caller may pass the same array twice, or slices of others, whose memory two results would share.
	if uintptr(unsafe.Pointer(start))%ir.Alignment != 0 || slices.ContainsFunc(r.blocks, same) {
		account.Release(int64(len(block)))
		return
	}
	r.grows = true
	if len(r.blocks) == limit {
		account.Release(int64(len(r.blocks[0])))
		r.blocks = slices.Delete(r.blocks, 0, 1)
	}
	r.blocks = append(r.blocks, block)
}

// take returns the smallest block of n to 2·n bytes, nil if there is none, and otherwise the number of bytes to
// allocate.
func (r *recyclePool) take(n int64) (block []byte, allocate int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	best := absent
	for i, b := range r.blocks {
		// At most twice as large, so that a small result does not occupy the memory of a large one.
		if size := int64(len(b)); size >= n && size <= 2*n && (best == absent || size < int64(len(r.blocks[best]))) {
			best = i
		}
	}
	switch {
	case best != absent:
		block = r.blocks[best]
		r.blocks = slices.Delete(r.blocks, best, best+1)
	case r.grows:
		// The states of a sequence grow by a token: with an eighth in reserve, a block serves for several of them.
		n += n / 8
	}
	return block, n
}

// free releases all blocks.
func (r *recyclePool) free(account *op.Account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	account.Release(r.size())
	r.blocks = nil
}

// size is the number of bytes; the caller holds the lock.
func (r *recyclePool) size() (bytes int64) {
	for _, b := range r.blocks {
		bytes += int64(len(b))
	}
	return bytes
}

// idle is the number of bytes of all blocks.
func (r *recyclePool) idle() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size()
}
