package conv

import (
	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Images are the elements of a tensor: Values, or Halves if they are Float16. Operators compute on Float16 elements in
// float32: they convert them while they pack or transform them, and sums before they store them, so that no large
// tensor exists in float32.
type Images[T float] struct {
	Values []T
	Halves []uint16
	// Float16 results out of range become infinite, as gradients should, instead of the largest finite value
	Exceeds bool
}

// ImagesOf are a's elements: T, or Float16 if T is float32. a may be nil.
func ImagesOf[T float](a *ir.Array, exceeds bool) Images[T] {
	switch {
	case a == nil:
		return Images[T]{}
	case a.DType == ir.Float16:
		return Images[T]{Halves: ir.View[uint16](a), Exceeds: exceeds}
	}
	return Images[T]{Values: ir.View[T](a)}
}

func (m Images[T]) isHalf() bool { return m.Halves != nil }

func (m Images[T]) len() int { return len(m.Values) + len(m.Halves) }

// from are the elements from index at on.
func (m Images[T]) from(at int) Images[T] {
	if m.isHalf() {
		m.Halves = m.Halves[at:]
	} else {
		m.Values = m.Values[at:]
	}
	return m
}

// read returns n elements from index at on, in buffer if they are Float16.
func read(m Images[float32], at, n int, buffer []float32) []float32 {
	if !m.isHalf() {
		return m.Values[at:][:n:n]
	}
	kernel.F32FromF16(buffer[:n], m.Halves[at:][:n])
	return buffer[:n]
}

// target returns the slice to write n elements from index at on to: buffer if they are Float16, which put converts.
func target(m Images[float32], at, n int, buffer []float32) []float32 {
	if m.isHalf() {
		return buffer[:n]
	}
	return m.Values[at:][:n:n]
}

// put converts elements, and stores them from index at on, if m is Float16.
func put(m Images[float32], at int, x []float32) {
	if m.isHalf() {
		half.Store(m.Halves[at:][:len(x)], x, m.Exceeds)
	}
}

// Halves states which tensors of a convolution are Float16: its input X and its output Y, or their gradients.
type Halves struct{ X, Y bool }
