//go:build amd64 && !noasm

package kernel

// lanesAfter and lanesBefore are windows of masks: from 16-i on, the lanes from i on, and those
// before i.
var (
	lanesAfter  = laneMasks(0, -1)
	lanesBefore = laneMasks(-1, 0)
)

func laneMasks(low, high int32) (m [2 * GemmPanel]int32) {
	for i := range GemmPanel {
		m[i], m[GemmPanel+i] = low, high
	}
	return m
}

func packLanesBulk(dst, x []float32, rows, to, from, lane, n, stride int, keep bool) bool {
	if !hasAVX2 || stride > 2 {
		return false
	}
	after, before := &lanesAfter[GemmPanel-lane], &lanesBefore[GemmPanel-lane-n]
	to, from, back := 4*to, 4*from, 4*lane*stride
	switch {
	case stride == 1 && keep:
		packLanesKeep1AVX2(&dst[0], &x[0], rows, to, from, back, after, before)
	case stride == 1:
		packLanesSet1AVX2(&dst[0], &x[0], rows, to, from, back, after, before)
	case keep:
		packLanesKeep2AVX2(&dst[0], &x[0], rows, to, from, back, after, before)
	default:
		packLanesSet2AVX2(&dst[0], &x[0], rows, to, from, back, after, before)
	}
	return true
}

func packLanesAtBulk(dst, x []float32, at []int32, lane, n, stride int, keep bool) bool {
	if !hasAVX2 || stride > 2 {
		return false
	}
	after, before := &lanesAfter[GemmPanel-lane], &lanesBefore[GemmPanel-lane-n]
	rows, back := len(at), 4*lane*stride
	switch {
	case stride == 1 && keep:
		packLanesAtKeep1AVX2(&dst[0], &x[0], rows, &at[0], back, after, before)
	case stride == 1:
		packLanesAtSet1AVX2(&dst[0], &x[0], rows, &at[0], back, after, before)
	case keep:
		packLanesAtKeep2AVX2(&dst[0], &x[0], rows, &at[0], back, after, before)
	default:
		packLanesAtSet2AVX2(&dst[0], &x[0], rows, &at[0], back, after, before)
	}
	return true
}

// weightRowsBulk takes all, or nothing of less than a vector: the last vector may overlap the one
// before it.
func weightRowsBulk(y, x []float32, at []int64, w []float32, first float32) (n int) {
	n = whole(len(y))
	if n == 0 || len(at) == 0 {
		return 0
	}
	weightRowsAVX2(&y[0], n, &x[0], &at[0], &w[0], len(at), first)
	if rest := len(y) - 8; n < len(y) {
		weightRowsAVX2(&y[rest], 8, &x[rest], &at[0], &w[0], len(at), first)
	}
	return len(y)
}
