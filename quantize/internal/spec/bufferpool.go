package spec

import (
	"sync"

	"github.com/mcompress/mcompress/pass"
)

// A buffers hands memory on from one weight of a run to the next: making it anew would
// clear, and fault in, as much as the model has. It never holds more than was in use at
// one time, which sync.Pool does not promise: a collection empties that, and the old
// and the new memory then stand side by side. A nil buffers makes memory anew.
type BufferPool struct {
	mu     sync.Mutex
	floats map[int64][][]float32 // by size in blocks
	bytes  map[int64][][]byte
}

func NewBufferPool() *BufferPool {
	return &BufferPool{floats: map[int64][][]float32{}, bytes: map[int64][][]byte{}}
}

// takeFloats returns n floats of any value, and what gives them back.
func (b *BufferPool) takeFloats(n int64) ([]float32, func()) {
	if b == nil {
		return make([]float32, n), func() {}
	}
	return take(&b.mu, b.floats, n)
}

// takeBytes returns n bytes of any value, and what gives them back.
func (b *BufferPool) takeBytes(n int64) ([]byte, func()) {
	if b == nil {
		return make([]byte, n), func() {}
	}
	return take(&b.mu, b.bytes, n)
}

func take[T any](mu *sync.Mutex, free map[int64][][]T, n int64) ([]T, func()) {
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
