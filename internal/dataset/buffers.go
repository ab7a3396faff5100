package dataset

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcompress/mcompress/ir"
)

// buffers are the memory of one batch at a time: every batch takes blocks in the same order, and so those of the batch
// before it. nil allocates new memory.
type buffers struct {
	of     *recycler
	blocks [][]byte
	next   int // block to take
}

// bytes returns n bytes. Their content is undefined.
func (b *buffers) bytes(n int64) []byte {
	if b == nil {
		return ir.AlignedBytes(n)
	}
	if b.next == len(b.blocks) {
		b.blocks = append(b.blocks, nil)
	}
	block := &b.blocks[b.next]
	b.next++
	if have := int64(len(*block)); have < n {
		*block = nil // so that they are not in memory at the same time
		*block = ir.AlignedBytes(n)
		b.of.held.Add(n - have)
	}
	return (*block)[:n:n]
}

// array returns an array. Its elements are undefined, but for strings.
func (b *buffers) array(dt ir.DType, shape ...int64) *ir.Array {
	if b == nil || dt == ir.String {
		return ir.NewArray(dt, shape...)
	}
	a := &ir.Array{DType: dt, Shape: shape}
	a.Data = b.bytes(a.Bytes())
	return a
}

// recycle lets the next batch take the blocks.
func (b *buffers) recycle() {
	if b == nil {
		return
	}
	b.next = 0
	if b.of.poison {
		for _, block := range b.blocks {
			for i := range block {
				block[i] = 0xff
			}
		}
	}
}

// A recycler keeps the buffers of iterations with Order.Reuse for later ones.
type recycler struct {
	mu     sync.Mutex
	free   []*buffers
	held   atomic.Int64 // bytes of all blocks
	poison bool
}

// take returns n buffers.
func (r *recycler) take(n int) []*buffers {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.free) < n {
		r.free = append(r.free, &buffers{of: r})
	}
	taken := slices.Clone(r.free[:n])
	r.free = slices.Delete(r.free, 0, n)
	return taken
}

// put returns buffers that no batch uses any more.
func (r *recycler) put(all []*buffers) {
	for _, b := range all {
		b.recycle()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(all, r.free...)
}

// PoisonReused overwrites the memory of batches with 0xFF when it is reused: a test of callers that set Order.Reuse.
func (s *Set) PoisonReused() { s.recycler.poison = true }
