package kernel

import "fmt"

// PackLanes copies blocks of n elements, at most 16, one per row of a panel: dst[r*to+lane+i] becomes
// x[r*from+i*stride] for i < n. The other lanes of the row become 0, or are unchanged if keep is set.
func PackLanes(dst, x []float32, rows, to, from, lane, n, stride int, keep bool) {
	if rows <= 0 {
		return
	}
	checkLanes(len(dst), len(x), rows, to, from, lane, n, stride)
	if n == 0 || !packLanesBulk(dst, x, rows, to, from, lane, n, stride, keep) {
		packLanesGo(dst, x, rows, to, from, lane, n, stride, keep)
	}
}

// checkLanes panics unless all accessed elements exist.
func checkLanes(dst, x, rows, to, from, lane, n, stride int) {
	if lane < 0 || n < 0 || lane+n > GemmPanel || to < GemmPanel || from < 0 || stride < 1 {
		panic(fmt.Sprintf("kernel: %d elements, %d apart, at lane %d do not fit into rows of %d", n, stride, lane, to))
	}
	within("dst", dst, (rows-1)*to+GemmPanel)
	if n > 0 {
		within("x", x, (rows-1)*from+(n-1)*stride+1)
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

// PackLanesAt is PackLanes for rows that are contiguous in dst, and at the offsets at in x, one per row. No element of
// at exceeds reach.
func PackLanesAt(dst, x []float32, at []int32, reach, lane, n, stride int, keep bool) {
	if len(at) == 0 {
		return
	}
	checkLanesAt(len(dst), len(x), len(at), reach, lane, n, stride)
	if !packLanesAtBulk(dst, x, at, lane, n, stride, keep) {
		packLanesAtGo(dst, x, at, lane, n, stride, keep)
	}
}

func checkLanesAt(dst, x, rows, reach, lane, n, stride int) {
	if lane < 0 || n < 1 || lane+n > GemmPanel || stride < 1 || reach < 0 {
		panic(fmt.Sprintf("kernel: %d elements, %d apart, at lane %d do not fit into a panel", n, stride, lane))
	}
	within("dst", dst, rows*GemmPanel)
	within("x", x, reach+(n-1)*stride+1)
}

func packLanesAtGo(dst, x []float32, at []int32, lane, n, stride int, keep bool) {
	for r, off := range at {
		packLanesGo(dst[r*GemmPanel:], x[off:], 1, GemmPanel, 0, lane, n, stride, keep)
	}
}

// WeightRows sums a window over one channel: element i of row r, y[r*to+i] for i < n, becomes first + Σ
// w[t]·x[r*from+at[t]+i], a chain of fused multiply-adds in the order of t.
func WeightRows(y []float32, to int, x []float32, from, rows, n int, at []int64, w []float32, first float32) {
	if rows <= 0 || n <= 0 {
		return
	}
	checkLen("w", len(w), len(at))
	if to < n && rows > 1 || from < 0 {
		panic(fmt.Sprintf("kernel: rows of %d elements do not fit %d and %d apart", n, to, from))
	}
	within("y", len(y), (rows-1)*to+n)
	for _, a := range at {
		if a < 0 || int(a)+(rows-1)*from+n > len(x) {
			panic(fmt.Sprintf("kernel: %d rows of %d elements from %d on are not within %d", rows, n, a, len(x)))
		}
	}
	if !weightRowsBulk(y, to, x, from, rows, n, at, w, first) {
		weightRowsGo(y, to, x, from, rows, n, at, w, first)
	}
}

func weightRowsGo(y []float32, to int, x []float32, from, rows, n int, at []int64, w []float32, first float32) {
	for r := range rows {
		row := y[r*to:][:n]
		for i := range row {
			sum := first
			for t, a := range at {
				sum = fma32(w[t], x[r*from+int(a)+i], sum)
			}
			row[i] = sum
		}
	}
}
