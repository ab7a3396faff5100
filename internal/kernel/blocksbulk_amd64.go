//go:build amd64 && !noasm

package kernel

func loadBlockBulk(dst []float32, lo, hi *[BlockCols]float32, src []float32, stride int) bool {
	if hasAVX2 {
		loadBlockAVX2(&dst[0], &lo[0], &hi[0], &src[0], 4*stride, len(dst)/BlockCols)
	}
	return hasAVX2
}

func searchBlockBulk(scale, zero, best *[BlockCols]float32, x []float32, base, mid *[BlockCols]float32,
	g BlockGrid) bool {
	if hasAVX2 {
		var squares [BlockCols]float32
		searchBlockAVX2(&scale[0], &zero[0], &x[0], len(x)/BlockCols, &base[0], &mid[0], g.Lo, g.Hi, g.Center,
			&g.Factors[0], len(g.Factors), &best[0], &squares[0])
	}
	return hasAVX2
}

func balanceBlockBulk(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32,
	carry *[BlockCols]float32, c IntRange, fraction float32) bool {
	if hasAVX2 {
		balanceBlockAVX2(&dst[0], stride, &x[0], len(x)/BlockCols, &scale[0], &zero[0], &carry[0], c.Lo, c.Hi,
			fraction, maxShift)
	}
	return hasAVX2
}

func shrinkBlockBulk(zero *[BlockCols]float32, x []float32, inverse *[BlockCols]float32, lo, hi, lambda,
	fraction float32) bool {
	if hasAVX2 {
		shrinkBlockAVX2(&zero[0], &x[0], len(x)/BlockCols, &inverse[0], lo, hi, lambda, fraction)
	}
	return hasAVX2
}

func pairBytesBulk(dst, src []byte, mask, factor byte) (n int) {
	if n = len(src) &^ 63; n == 0 || !hasAVX2 {
		return 0
	}
	pairBytesAVX2(&dst[0], &src[0], n, 0x01010101*uint32(mask), 0x00010001*(1|uint32(factor)<<8))
	return n
}

func roundBlockBulk(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32,
	c IntRange) bool {
	if hasAVX2 {
		roundBlockAVX2(&dst[0], stride, &x[0], len(x)/BlockCols, &scale[0], &zero[0], c.Lo, c.Hi)
	}
	return hasAVX2
}
