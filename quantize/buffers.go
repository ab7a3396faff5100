package quantize

import "sync"

// Buffers are handed on from one weight to the next: making them anew would clear, and
// fault in, as much memory as the model has.
var (
	floatBuffers sync.Pool
	byteBuffers  sync.Pool
)

// getFloats returns n floats of any value, and what gives them back.
func getFloats(n int64) ([]float32, func()) {
	b, _ := floatBuffers.Get().(*[]float32)
	if b == nil || int64(cap(*b)) < n {
		fresh := make([]float32, n)
		b = &fresh
	}
	return (*b)[:n], func() { floatBuffers.Put(b) }
}

// getBytes returns n bytes of any value, and what gives them back.
func getBytes(n int64) ([]byte, func()) {
	b, _ := byteBuffers.Get().(*[]byte)
	if b == nil || int64(cap(*b)) < n {
		fresh := make([]byte, n)
		b = &fresh
	}
	return (*b)[:n], func() { byteBuffers.Put(b) }
}
