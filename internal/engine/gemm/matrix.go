package gemm

import "fmt"

// A Matrix is a view of elements: (i, j) is Data[i*Row+j*Col]. A stride of 0 repeats an element.
type Matrix[T any] struct {
	Data     []T
	Row, Col int
}

// Rows is a row-major matrix whose rows are stride elements apart.
func Rows[T any](data []T, stride int) Matrix[T] { return Matrix[T]{data, stride, 1} }

// T is the transposed matrix, over the same elements.
func (m Matrix[T]) T() Matrix[T] { return Matrix[T]{m.Data, m.Col, m.Row} }

// from is the matrix that starts at (i, j), which may be the end of the data.
func (m Matrix[T]) from(i, j int) Matrix[T] {
	return Matrix[T]{m.Data[min(i*m.Row+j*m.Col, len(m.Data)):], m.Row, m.Col}
}

// check panics unless m has all elements of rows by cols.
func (m Matrix[T]) check(name string, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if m.Row < 0 || m.Col < 0 || (rows-1)*m.Row+(cols-1)*m.Col >= len(m.Data) {
		panic(fmt.Sprintf("gemm: %d elements with strides %d and %d are too few for the %d by %d matrix %s",
			len(m.Data), m.Row, m.Col, rows, cols, name))
	}
}
