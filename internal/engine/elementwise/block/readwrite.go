package block

import (
	"unsafe"

	"github.com/mcompress/mcompress/ir"
)

// Len is the number of elements that are converted at once: blocks of all operands stay in the first-level cache.
const Len = 2048

// A Loader reads blocks of a tensor.
type Loader[T ir.Element] struct {
	data []T
	load func(dst []T, at int) // if elements are converted
}

// Read returns a reader of a, whose elements are stored as T or converted to it: float16 and bfloat16 to float32, bool
// and smaller integers to int64 or uint64, and all numbers to float64.
func Read[T ir.Element](a *ir.Array) Loader[T] {
	var zero T
	if load, ok := loading(a, zero).(func([]T, int)); ok {
		return Loader[T]{load: load}
	}
	return Loader[T]{data: ir.View[T](a)}
}

// Block is the n elements from at on: the tensor's own memory, or buf, which has at least that size.
func (r Loader[T]) Block(buf []T, at, n int) []T {
	if r.load == nil {
		return r.data[at : at+n]
	}
	r.load(buf[:n], at)
	return buf[:n]
}

// One is the element at at.
func (r Loader[T]) One(at int) T {
	if r.load == nil {
		return r.data[at]
	}
	var one [1]T
	r.load(one[:], at)
	return one[0]
}

// Direct is the whole payload, nil if it is not stored as T.
func (r Loader[T]) Direct() []T { return r.data }

// A Writer writes blocks of a tensor.
type Writer[T ir.Element] struct {
	data  []T
	store func(at int, x []T) // if elements are converted
}

// Write returns a writer of a, the inverse of Read: integers keep their low bits. A nil a is an output without
// consumers: writes are discarded.
func Write[T ir.Element](a *ir.Array) Writer[T] {
	if a == nil {
		return Writer[T]{}
	}
	var zero T
	if store, ok := storing(a, zero).(func(int, []T)); ok {
		return Writer[T]{store: store}
	}
	return Writer[T]{data: ir.View[T](a)}
}

// Block is the destination of the n elements from at on, to be filled before Done is called: the tensor's own memory,
// or buf.
func (w Writer[T]) Block(buf []T, at, n int) []T {
	if w.data != nil {
		return w.data[at : at+n]
	}
	return buf[:n]
}

// Done stores x, which Block returned for at.
func (w Writer[T]) Done(at int, x []T) {
	if w.store != nil {
		w.store(at, x)
	}
}

// Direct is the whole payload, nil if it is not stored as T.
func (w Writer[T]) Direct() []T { return w.data }

// Set stores one element.
func (w Writer[T]) Set(at int, x T) {
	switch {
	case w.data != nil:
		w.data[at] = x
	case w.store != nil:
		w.store(at, []T{x})
	}
}

// A Scratch is memory of one worker, allocated in slices of types without pointers.
type Scratch struct{ Free []byte }

// Take returns the next n elements of s, not cleared.
func Take[T any](s *Scratch, n int) []T {
	size := Bytes[T](n)
	taken := Words[T](s.Free, n)
	s.Free = s.Free[size:]
	return taken
}

// Bytes is the size of Take's result for n elements of T, rounded up for alignment.
func Bytes[T any](n int) int64 {
	var zero T
	return (int64(n)*int64(unsafe.Sizeof(zero)) + 63) &^ 63
}

// Words are the first n elements of b, which is aligned for them.
func Words[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	var zero T
	b = b[:n*int(unsafe.Sizeof(zero))]
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}
