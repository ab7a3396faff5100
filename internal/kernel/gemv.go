package kernel

// GemvFloat adds to sums the products of k elements of a, step apart, and the rows of b, row elements apart: a row
// times an unpacked matrix. Every sum is a chain in the order of k, bit-identical to GemmFloat that accumulates into
// the same value.
func GemvFloat(sums, a []float32, step int, b []float32, row, k int) {
	if k == 0 || len(sums) == 0 {
		return
	}
	within("a", len(a), (k-1)*step+1)
	within("b", len(b), (k-1)*row+len(sums))
	n := gemvBulk(sums, a, step, b, row, k)
	gemvGo(sums[n:], a, step, b[n:], row, k)
}

func gemvGo(sums, a []float32, step int, b []float32, row, k int) {
	if len(sums) == 0 {
		return
	}
	for i := range k {
		x, y := a[i*step], b[i*row:][:len(sums)]
		for j, v := range y {
			sums[j] += float32(x * v)
		}
	}
}
