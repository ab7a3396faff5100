//go:build amd64 && !noasm

package kernel

// lanesAfter and lanesBefore are windows of masks: at offset 16-i, the lanes from i on, and those before i.
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

func copyRowsBulk(dst []float32, to int, x []float32, from, rows, n int) bool {
	if !hasAVX2 {
		return false
	}
	copyRowsAVX2(&dst[0], 4*to, &x[0], 4*from, rows, n)
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

// weightRowsBulk processes everything, or nothing if rows are shorter than a vector: the last vector of a row, and the
// last four rows, may overlap the preceding ones.
func weightRowsBulk(y []float32, to int, x []float32, from, rows, n int, at []int64, w []float32, first float32) bool {
	if wholeFMA(n) == 0 || len(at) == 0 {
		return false
	}
	high := 4
	if rows < high {
		high = 1
	}
	for r := 0; r < rows; r += high {
		r := min(r, rows-high)
		weightRowsOf(high, y[r*to:], to, x[r*from:], from, n, at, w, first)
	}
	return true
}

// weightRowsOf computes high rows.
func weightRowsOf(high int, y []float32, to int, x []float32, from, n int, at []int64, w []float32, first float32) {
	n8, rest := n&^7, n-8
	if high == 1 {
		weightRows1AVX2(&y[0], 4*to, &x[0], 4*from, n8, &at[0], &w[0], len(at), first)
		if n8 < n {
			weightRows1AVX2(&y[rest], 4*to, &x[rest], 4*from, 8, &at[0], &w[0], len(at), first)
		}
		return
	}
	weightRows4AVX2(&y[0], 4*to, &x[0], 4*from, n8, &at[0], &w[0], len(at), first)
	if n8 < n {
		weightRows4AVX2(&y[rest], 4*to, &x[rest], 4*from, 8, &at[0], &w[0], len(at), first)
	}
}

func winogradInputBulk(v []float32, step int, x []float32, line, channels, tiles int) bool {
	switch {
	case hasAVX512:
		winogradInputAVX512(&v[0], 4*step, &x[0], 4*line, 4*channels, tiles)
	case hasAVX2:
		winogradInputAVX2(&v[0], 4*step, &x[0], 4*line, 4*channels, tiles)
	default:
		return false
	}
	return true
}

func winogradOutputBulk(y []float32, line int, m []float32, step, channels, tiles int, first []float32) bool {
	switch {
	case hasAVX512:
		winogradOutputAVX512(&y[0], 4*line, &m[0], 4*step, 4*channels, tiles, &first[0])
	case hasAVX2:
		winogradOutputAVX2(&y[0], 4*line, &m[0], 4*step, 4*channels, tiles, &first[0])
	default:
		return false
	}
	return true
}

// bulk returns the number of channels that it computed. The last two positions overlap the ones before if their number
// is odd; a single position is computed twice.
func (b *ByteWindow) bulk(dst, x []byte, positions, step int) (channels int) {
	row := len(b.First)
	if channels = row &^ (DepthwiseGroup - 1); !hasAVX2 || channels == 0 || len(b.At) == 0 {
		return 0
	}
	switch {
	case positions == 1:
		b.twice(dst, x, 1, 0, 0)
	case positions%2 == 1:
		b.twice(dst[(positions-2)*row:], x[(positions-2)*step:], 1, step, row)
		fallthrough
	default:
		b.twice(dst, x, positions/2, step, row)
	}
	return channels
}

// twice computes n times two positions, which are row elements apart in dst.
func (b *ByteWindow) twice(dst, x []byte, n, step, row int) {
	slide := depthwiseUnsignedAVX2
	if b.Signed {
		slide = depthwiseSignedAVX2
	}
	slide(&dst[0], &x[0], n, step, row, &b.At[0], len(b.At)/2, &b.W[0], &b.First[0], len(b.First)/DepthwiseGroup,
		&b.Q.Scale[0], &b.Q.Bias[0], b.Q.Zero-roundShiftBits, both16(b.Q.Levels.Lo), both16(b.Q.Levels.Hi))
}

func (f *FloatWindow) bulk(y []float32, to int, x []float32, from, positions int) bool {
	if !hasFMA || len(f.Taps) == 0 {
		return false
	}
	count, groups := len(f.Taps), len(f.First)/DepthwiseGroup // calls by name, so that taps need not be on the heap
	if hasAVX512 {
		depthwiseFloatAVX512(&y[0], 4*to, &x[0], 4*from, positions, &f.Taps[0].X, count, &f.W[0], &f.First[0], groups,
			f.Lo, f.Hi)
	} else {
		depthwiseFloatAVX2(&y[0], 4*to, &x[0], 4*from, positions, &f.Taps[0].X, count, &f.W[0], &f.First[0], groups,
			f.Lo, f.Hi)
	}
	return true
}

// maxWindowsBulk processes everything, or nothing: the last vector may overlap the one before it.
func maxWindowsBulk(y, x []float32, at []int64, taps int, first float32) bool {
	n := whole(len(y))
	if n == 0 || len(at) == 0 {
		return false
	}
	maxWindowsOf(y[:n], x, at, taps, first)
	if rest := len(y) - 8; n < len(y) {
		maxWindowsOf(y[rest:], x[2*rest:], at, taps, maxColumn(x, at, 2*rest-1))
	}
	return true
}

func maxWindowsOf(y, x []float32, at []int64, taps int, first float32) {
	if taps == 2 {
		maxPairsAVX2(&y[0], &x[0], len(y), &at[0], len(at))
	} else {
		maxTriplesAVX2(&y[0], &x[0], len(y), &at[0], len(at), first)
	}
}
