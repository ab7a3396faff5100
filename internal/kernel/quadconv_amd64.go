//go:build amd64 && !noasm

package kernel

// A quadEpilogue is the parameters of a requantization that the kernels repeat in their lanes. Levels are those of
// uint8: int8 ones are 128 above, and the result is flipped.
type quadEpilogue struct{ zero, lo, hi, flip uint32 }

// quads is false if a zero point and sums that are saturated to 16 bits might exceed them.
func (q Requantization) quads() (e quadEpilogue, ok bool) {
	const most = 1 << 14
	lift := int32(0)
	if q.Levels.Lo < 0 {
		lift, e.flip = 128, 0x80808080
	}
	each := func(level int32) uint32 { return uint32(uint8(level+lift)) * 0x01010101 }
	e.zero, e.lo, e.hi = both16(q.Zero+lift), each(q.Levels.Lo), each(q.Levels.Hi)
	return e, q.Zero > -most && q.Zero < most
}

// bulk computes everything and reports true if the CPU has the instructions.
func (q *QuadConv) bulk(dst []byte, to int, x []byte, positions, step, lo, hi int) bool {
	e, ok := q.Q.quads()
	// Without VPDPBUSD, pairs of weights by VPMADDUBSW are faster (RequantizePairs).
	if !hasVNNI || !ok {
		return false
	}
	for j := lo; j < hi; j += 2 * GemmPanel {
		if cols := min(hi-j, 2*GemmPanel); q.fillsTiles(positions, cols) {
			q.byTiles(e, dst, to, x, positions, step, j, cols)
		} else {
			q.columns(e, dst, to, x, positions, step, j, cols)
		}
	}
	return true
}

// columns computes up to two panels. The last strip begins earlier if positions are left, whose results are written
// twice.
func (q *QuadConv) columns(e quadEpilogue, dst []byte, to int, x []byte, positions, step, j, cols int) {
	high := quadHigh(positions)
	q.strips(e, high, positions/high, dst[j:], to, x, step, j, cols)
	if positions%high > 0 {
		last := positions - high
		q.strips(e, high, 1, dst[last*to+j:], to, x[last*step:], step, j, cols)
	}
}

// quadHigh is the height of strips: 7 for the sizes of images of 224×224 and their halves, if it leaves fewer positions
// over than 8.
func quadHigh(positions int) int {
	excess := func(high int) int { return (high - positions%high) % high }
	switch {
	case positions < 4:
		return 1
	case positions < 7:
		return 4
	// Rows of 28, 14 and 7 positions fill no strips of 8: ResNet18 in static int8 9.0 → 7.9 ms.
	case positions == 7 || excess(7) < excess(8):
		return 7
	}
	return 8
}

func (q *QuadConv) strips(e quadEpilogue, high, strips int, dst []byte, to int, x []byte, step, j, cols int) {
	panel := GemmPanel * GemmQuad * q.quads()
	w, mask, f := &q.W[j/GemmPanel*panel], uint32(1)<<cols-1, quadConv1x16AVX512
	switch (tileShape{high, (cols + GemmPanel - 1) / GemmPanel * GemmPanel}) {
	case tileShape{1, 32}:
		f = quadConv1x32AVX512
	case tileShape{4, 16}:
		f = quadConv4x16AVX512
	case tileShape{4, 32}:
		f = quadConv4x32AVX512
	case tileShape{7, 16}:
		f = quadConv7x16AVX512
	case tileShape{7, 32}:
		f = quadConv7x32AVX512
	case tileShape{8, 16}:
		f = quadConv8x16AVX512
	case tileShape{8, 32}:
		f = quadConv8x32AVX512
	}
	f(strips, &x[0], step, &q.Runs[0].At, len(q.Runs), w, panel, &q.First[j], &dst[0], to, mask, &q.Q.Scale[j],
		&q.Q.Bias[j], e.zero, e.lo, e.hi, e.flip)
}

// bulk computes everything and reports true if the CPU has the instructions. Windows of Positions that read adjacent
// bytes are computed as those of one position.
func (q *QuadWindow) bulk(dst, x []byte, positions, step int) bool {
	e, ok := q.Q.quads()
	if !hasVNNI || !ok {
		return false
	}
	// Windows are adjacent in memory, so that several positions of 16·n channels are one of whole vectors.
	if n, all := positions*q.Channels, q.Positions*q.Channels; step == q.Channels {
		q.blocks(e, dst, x, n/all, all, all, all)
		done := n / all * all
		if done < n {
			q.blocks(e, dst[done:], x[done:], 1, 0, 0, n-done)
		}
		return true
	}
	q.blocks(e, dst, x, positions, step, q.Channels, q.Channels)
	return true
}

// blocks computes n channels at positions that are step and to bytes apart.
func (q *QuadWindow) blocks(e quadEpilogue, dst, x []byte, positions, step, to, n int) {
	if positions == 0 {
		return
	}
	// Only stores are masked. Parameters are in whole vectors, as a load with a mask of bytes takes an instruction
	// more: 6.1 instead of 5.2 outputs/ns.
	mask := ^uint64(0) >> (-n % QuadBlock & (QuadBlock - 1))
	quadWindowAVX512(&dst[0], to, &x[0], step, positions, &q.At[0], len(q.At)/GemmQuad, &q.W[0], &q.First[0],
		(n+QuadBlock-1)/QuadBlock, mask,
		&q.Q.Scale[0], &q.Q.Bias[0], e.zero, e.lo, e.hi, e.flip)
}

// bulk returns the number of channels that it computed.
func (m *MaxBytes) bulk(dst, x []byte, positions, step int) (channels int) {
	if channels = m.Channels &^ 31; !hasAVX2 || channels == 0 {
		return 0
	}
	slide := maxUnsignedAVX2
	if m.Signed {
		slide = maxSignedAVX2
	}
	slide(&dst[0], m.Channels, &x[0], step, positions, &m.At[0], len(m.At), channels)
	return channels
}
