package kernel

import "math"

// NMColsDouble is NMCols for float64. With one column it is NMRows.
func NMColsDouble(x []float64, cols, n, m int) {
	checkNM(n, m)
	checkRows(len(x), cols)
	for size := m * cols; len(x) > 0; {
		group := x[:min(size, len(x))]
		for j := range cols {
			nmGroupDouble(group[j:], cols, n)
		}
		x = x[len(group):]
	}
}

// nmGroupDouble prunes the group x[0], x[stride], x[2*stride], … by searching the next element to prune until n are
// left. Groups are small.
func nmGroupDouble(x []float64, stride, n int) {
	fallen := make([]bool, (len(x)+stride-1)/stride)
	for range len(fallen) - n {
		next := -1
		for i, f := range fallen {
			if !f && (next < 0 || math.Abs(x[i*stride]) < math.Abs(x[next*stride])) {
				next = i
			}
		}
		fallen[next] = true
	}
	for i, f := range fallen {
		if f {
			x[i*stride] = 0
		}
	}
}
