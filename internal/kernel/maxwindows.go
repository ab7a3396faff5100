package kernel

import (
	"fmt"
	"math"
)

// MaxWindows pools windows of 2 or 3 columns of some rows that start 2 columns apart. y[i] becomes the maximum of
// columns 2i and 2i+1, and of the column before them if taps is 3, of which the first one is given as first. Row r has
// column c at x[at[r]+c]. The maximum is that of Max, and -Inf if there are no rows.
func MaxWindows(y, x []float32, at []int64, taps int, first float32) {
	if taps != 2 && taps != 3 {
		panic(fmt.Sprintf("kernel: windows of %d columns, not 2 or 3", taps))
	}
	if len(y) == 0 {
		return
	}
	for _, a := range at {
		if a < 0 || int(a)+2*len(y) > len(x) {
			panic(fmt.Sprintf("kernel: %d windows from %d on are not within %d", len(y), a, len(x)))
		}
	}
	if !maxWindowsBulk(y, x, at, taps, first) {
		maxWindowsGo(y, x, at, taps, first)
	}
}

func maxWindowsGo(y, x []float32, at []int64, taps int, first float32) {
	for i := range y {
		even, odd := maxColumn(x, at, 2*i), maxColumn(x, at, 2*i+1)
		y[i] = max(even, odd)
		if taps == 3 {
			y[i] = max(y[i], first)
			first = odd
		}
	}
}

// maxColumn is the maximum of column c.
func maxColumn(x []float32, at []int64, c int) float32 {
	top := float32(math.Inf(-1))
	for _, a := range at {
		top = max(top, x[int(a)+c])
	}
	return top
}
