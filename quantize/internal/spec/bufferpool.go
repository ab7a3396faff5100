package spec

import (
	"sync"

	"github.com/mcompress/mcompress/pass"
)

// A BufferPool reuses memory between the weights of a run: new memory would be cleared, and faulted in, for the size of
// the whole model. It never holds more than was in use at one time, unlike sync.Pool, which a garbage collection
// empties while the old memory is still there. A nil pool allocates.
type BufferPool struct {
	mu     sync.Mutex
	floats map[int64][][]float32 // by size in multiples of pass.Block
	bytes  map[int64][][]byte
}

// NewBufferPool returns an empty pool.
func NewBufferPool() *BufferPool {
	return &BufferPool{floats: map[int64][][]float32{}, bytes: map[int64][][]byte{}}
}

// takeFloats returns n uninitialized floats, and a function that returns them to the pool.
func (b *BufferPool) takeFloats(n int64) ([]float32, func()) {
	if b == nil {
		return make([]float32, n), func() {}
	}
	return take(&b.mu, b.floats, n)
}

// takeBytes returns n uninitialized bytes, and a function that returns them to the pool.
func (b *BufferPool) takeBytes(n int64) ([]byte, func()) {
	if b == nil {
		return make([]byte, n), func() {}
	}
	return take(&b.mu, b.bytes, n)
}

func take[T any](mu *sync.Mutex, free map[int64][][]T, n int64) ([]T, func()) {
	// In multiples, so that weights of about the same size share memory.
	blocks := (n + pass.Block - 1) / pass.Block
	mu.Lock()
	defer mu.Unlock()
	var t []T
	if kept := free[blocks]; len(kept) > 0 {
		t, free[blocks] = kept[len(kept)-1], kept[:len(kept)-1]
	} else {
		t = make([]T, blocks*pass.Block)
	}
	return t[:n], func() {
		mu.Lock()
		defer mu.Unlock()
		free[blocks] = append(free[blocks], t)
	}
}
