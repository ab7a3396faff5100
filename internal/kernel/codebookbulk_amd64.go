//go:build amd64 && !noasm

package kernel

import "math/bits"

func (c *Codebook) searchScaleBulk(magnitudes []byte, x []float32, block int) (n int) {
	if n = len(magnitudes) &^ 7; n == 0 || block%8 != 0 || !hasAVX2 {
		return 0
	}
	s := &c.scales
	search := searchScaleAVX2
	if len(s.pairs) > 1 {
		search = searchScalePairsAVX2
	}
	search(&magnitudes[0], &x[0], n, 4*block, &s.inverse[0], &s.squares[0], &s.ratios[0], &s.pairs[0][0].mean[0],
		len(s.pairs))
	return n
}

func (c *Codebook) balanceRowBulk(dst []byte, b Blocks, carry []float32, part float32) int {
	if len(dst) == 0 || b.Size%8 != 0 || !hasAVX2 {
		return 0
	}
	balanceRowAVX2(&dst[0], &b.X[0], &b.Scales[0], &b.Inverse[0], len(b.Scales), 4*b.Size, &c.limits[0][0],
		&c.entries[0], &carry[0], part)
	return len(dst)
}

func (c *Codebook) balanceRunBulk(dst []byte, b Blocks, carry float32) (done bool, sum float32) {
	if len(dst) == 0 || b.Size%8 != 0 || !hasAVX2 {
		return false, carry
	}
	balanceRunAVX2(&dst[0], &b.X[0], &b.Scales[0], &b.Inverse[0], len(b.Scales), 4*b.Size, &c.limits[0][0],
		&c.entries[0], &carry)
	return true, carry
}

func (c *Codebook) nearestBulk(dst []byte, x []float32, scales []byte, block int) (n int) {
	if n = len(scales) &^ 7; n == 0 || block%8 != 0 || !hasAVX2 {
		return 0
	}
	s := &c.nearest
	nearestEntryAVX2(&dst[0], &x[0], &scales[0], n, 4*block, &s.inverse[0], &s.first[0], &s.limits[0][0], s.steps)
	return n
}

func blockMagnitudesBulk(dst []byte, x []float32, block int, limits *[octaveSteps]uint32) (n int) {
	if n = len(dst) &^ 7; n == 0 || block%8 != 0 || !hasAVX2 {
		return 0
	}
	blockMagnitudesAVX2(&dst[0], &x[0], n, 4*block, &limits[0])
	return n
}

func (l *Lookup) decodeBulk(dst []float32, dstRow, at, stride, rows, cols int) (n int) {
	if n = cols &^ 7; n == 0 || !hasAVX2 || !l.aligned(at, stride) {
		return 0
	}
	to, indices, table, shift := &dst[0], &l.Indices[0], &l.Table[0], bits.TrailingZeros(uint(l.Block))
	switch {
	case l.Block == 0 && l.Bits == 4:
		lookup4AVX2(to, 4*dstRow, indices, table, at, stride, rows, n)
	case l.Block == 0:
		lookup8AVX2(to, 4*dstRow, indices, table, at, stride, rows, n)
	case l.Blocks == nil && l.Bits == 4:
		lookup4FloatScaledAVX2(to, 4*dstRow, indices, table, at, stride, rows, n, shift, &l.Scales[0])
	case l.Blocks == nil:
		lookup8FloatScaledAVX2(to, 4*dstRow, indices, table, at, stride, rows, n, shift, &l.Scales[0])
	case l.Bits == 4:
		lookup4ScaledAVX2(to, 4*dstRow, indices, table, at, stride, rows, n, shift, &l.Scales[0], &l.Blocks[0])
	default:
		lookup8ScaledAVX2(to, 4*dstRow, indices, table, at, stride, rows, n, shift, &l.Scales[0], &l.Blocks[0])
	}
	return n
}
