package conv

import "github.com/mcompress/mcompress/internal/kernel"

// arithmetic is the set of loops over rows of one type: kernels for float32, plain Go for others.
type arithmetic[T any] struct {
	max         func(y, a, b []T)          // y may be a or b
	add         func(y, x []T)             // into y
	stridedCopy func(y, x []T, stride int) // y[i] = x[i*stride]
}

// pooled are the element types of pools.
type poolElement interface {
	float32 | float64 | int8 | uint8
}

func arithmeticOf[T poolElement]() arithmetic[T] {
	a, ok := any(arithmetic[float32]{
		kernel.Max,
		func(y, x []float32) { kernel.Add(y, y, x) },
		stridedCopyFloat,
	}).(arithmetic[T])
	if !ok {
		a = arithmetic[T]{greater[T], add[T], stridedCopy[T]}
	}
	return a
}

// greater sets each y to the maximum of a and b; NaN propagates.
func greater[T poolElement](y, a, b []T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = max(a[i], b[i])
	}
}

func add[T poolElement](y, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] += v
	}
}

func stridedCopy[T any](y, x []T, stride int) {
	if stride == 1 {
		copy(y, x)
		return
	}
	for i := range y {
		y[i] = x[i*stride]
	}
}

// stridedCopyFloat processes panels with a kernel, of which the last one may overlap the one before it.
func stridedCopyFloat(y, x []float32, stride int) {
	n := len(y) / panel
	if stride == 1 || n == 0 {
		stridedCopy(y, x, stride)
		return
	}
	kernel.PackLanes(y, x, n, panel, panel*stride, 0, panel, stride, false)
	last := len(y) - panel
	kernel.PackLanes(y[last:], x[last*stride:], 1, panel, 0, 0, panel, stride, false)
}

func fill[T any](xs []T, v T) { repeat(xs, []T{v}) }

// repeat fills xs with copies of row.
func repeat[T any](xs, row []T) {
	for n := copy(xs, row); n < len(xs); n *= 2 {
		copy(xs[n:], xs[:n])
	}
}

// part is the i-th of the equal parts of xs that have n elements.
func part[T any](xs []T, i, n int) []T { return xs[i*n : (i+1)*n : (i+1)*n] }
