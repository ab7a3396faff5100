package kernel

import "fmt"

// CopyRows copies a part of a matrix: dst[r*to+i] becomes x[r*from+i] for r < rows and i < n. Rows do not overlap.
func CopyRows(dst []float32, to int, x []float32, from, rows, n int) {
	if rows <= 0 || n <= 0 {
		return
	}
	if to < 0 || from < 0 {
		panic(fmt.Sprintf("kernel: rows %d and %d elements apart", to, from))
	}
	within("dst", len(dst), (rows-1)*to+n)
	within("x", len(x), (rows-1)*from+n)
	if !copyRowsBulk(dst, to, x, from, rows, n) {
		copyRowsGo(dst, to, x, from, rows, n)
	}
}

func copyRowsGo(dst []float32, to int, x []float32, from, rows, n int) {
	for r := range rows {
		copy(dst[r*to:][:n], x[r*from:])
	}
}
