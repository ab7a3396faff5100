package kernel

import "math"

// FilterRange is one step of finding the k-th magnitude: it counts the elements of x whose magnitude bits (see
// AbsMaxBits) are below lo, and appends to dst those from lo to hi, both included, in order.
func FilterRange(dst []uint32, x []float32, lo, hi uint32) (below int, out []uint32) {
	if lo > magnitude {
		return len(x), dst
	}
	n, below, dst := filterRangeBulk(dst, x, lo, min(hi, magnitude))
	rest, dst := filterRangeGo(dst, x[n:], lo, hi)
	return below + rest, dst
}

func filterRangeGo(dst []uint32, x []float32, lo, hi uint32) (below int, out []uint32) {
	for _, v := range x {
		b := math.Float32bits(v) & magnitude
		if b < lo {
			below++
		} else if b <= hi {
			dst = append(dst, b)
		}
	}
	return below, dst
}
