//go:build amd64 && !noasm

package kernel

// quadTall is the number of positions that are multiplied by AMX before their sums, in the L1 cache, are requantized.
// It is even.
const quadTall = 4 * amxRows

// quadLeast is the least number of positions for which AMX, which stores sums before they are requantized, is faster
// than VPDPBUSD.
const quadLeast = 8

// fillsTiles reports whether AMX is faster for these positions and columns than VPDPBUSD.
func (q *QuadConv) fillsTiles(positions, cols int) bool {
	if !hasAMX || positions < quadLeast || cols <= GemmPanel {
		return false
	}
	for _, r := range q.Runs {
		// Each run is a product of its own, so the shortest one decides.
		if GemmQuad*r.Quads < amxLeastK {
			return false
		}
	}
	return true
}

// byTiles computes 17 to 32 columns.
func (q *QuadConv) byTiles(e quadEpilogue, dst []byte, to int, x []byte, positions, step, j, cols int) {
	// 64 positions of sums stay in the L1 cache until they are requantized, with the parameters of 32 columns in
	// registers: 64×64×192 430 → 1150 GOP/s, 7×512×512 460 → 410 (Intel Xeon with AVX-512).
	var sums [quadTall * 2 * GemmPanel]int32
	for p := 0; p < positions; p += quadTall {
		rows := min(quadTall, positions-p)
		q.sum(sums[:], x[p*step:], rows, step, j, cols)
		quadRowsAVX512(rows, &sums[0], &dst[p*to+j], to, uint32(1)<<cols-1, &q.Q.Scale[j], &q.Q.Bias[j], e.zero, e.lo,
			e.hi, e.flip)
	}
}

// sum multiplies rows by two panels of weights, run by run.
func (q *QuadConv) sum(sums []int32, x []byte, rows, step, j, cols int) {
	panel := GemmPanel * GemmQuad * q.quads()
	// The first run starts with the parameters of the columns, the others with the sums of the one before.
	first, ldFirst, w := q.First[j:], 0, q.W[j/GemmPanel*panel:]
	for _, r := range q.Runs {
		k := int(GemmQuad * r.Quads)
		(&gemmInt{sums, 2 * GemmPanel, first, ldFirst, x[r.At:], step, 1, w, panel, rows, cols, k}).byTiles()
		first, ldFirst, w = sums, 2*GemmPanel, w[k*GemmPanel:]
	}
}
