package kernel

import "fmt"

// PackLanes copies blocks of n elements, at most 16, one for each row of a panel: dst[r*to+lane+i]
// becomes x[r*from+i*stride] for i < n. The other lanes of the row become 0, or stay as they are
// if keep says so.
func PackLanes(dst, x []float32, rows, to, from, lane, n, stride int, keep bool) {
	if rows <= 0 {
		return
	}
	if lane < 0 || n < 0 || lane+n > GemmPanel || to < GemmPanel || from < 0 || stride < 1 {
		panic(fmt.Sprintf("kernel: %d elements, %d apart, at lane %d do not fit into rows of %d", n, stride, lane, to))
	}
	within("dst", len(dst), (rows-1)*to+GemmPanel)
	if n > 0 {
		within("x", len(x), (rows-1)*from+(n-1)*stride+1)
	}
	if n == 0 || !packLanesBulk(dst, x, rows, to, from, lane, n, stride, keep) {
		packLanesGo(dst, x, rows, to, from, lane, n, stride, keep)
	}
}

func packLanesGo(dst, x []float32, rows, to, from, lane, n, stride int, keep bool) {
	for r := range rows {
		row := dst[r*to:][:GemmPanel]
		if !keep {
			clear(row)
		}
		for i := range n {
			row[lane+i] = x[r*from+i*stride]
		}
	}
}

// PackLanesAt is PackLanes for rows that lie side by side in dst, and in x where at says, as it does
// for every row. No element of at is greater than reach.
func PackLanesAt(dst, x []float32, at []int32, reach, lane, n, stride int, keep bool) {
	if len(at) == 0 {
		return
	}
	if lane < 0 || n < 1 || lane+n > GemmPanel || stride < 1 || reach < 0 {
		panic(fmt.Sprintf("kernel: %d elements, %d apart, at lane %d do not fit into a panel", n, stride, lane))
	}
	within("dst", len(dst), len(at)*GemmPanel)
	within("x", len(x), reach+(n-1)*stride+1)
	if !packLanesAtBulk(dst, x, at, lane, n, stride, keep) {
		packLanesAtGo(dst, x, at, lane, n, stride, keep)
	}
}

func packLanesAtGo(dst, x []float32, at []int32, lane, n, stride int, keep bool) {
	for r, off := range at {
		packLanesGo(dst[r*GemmPanel:], x[off:], 1, GemmPanel, 0, lane, n, stride, keep)
	}
}

// WeightRows writes first + Σ w[t]·x[at[t]+i] for every element i of y, in the order of t, rounded
// after each step: a window over one channel, whose rows lie where at says.
func WeightRows(y, x []float32, at []int64, w []float32, first float32) {
	checkLen("w", len(w), len(at))
	for _, a := range at {
		if a < 0 || int(a)+len(y) > len(x) {
			panic(fmt.Sprintf("kernel: a row of %d elements at %d of %d", len(y), a, len(x)))
		}
	}
	n := weightRowsBulk(y, x, at, w, first)
	weightRowsGo(y[n:], x, n, at, w, first)
}

// weightRowsGo starts at element from of the rows.
func weightRowsGo(y, x []float32, from int, at []int64, w []float32, first float32) {
	for i := range y {
		sum := first
		for t, a := range at {
			sum += float32(w[t] * x[int(a)+from+i])
		}
		y[i] = sum
	}
}
