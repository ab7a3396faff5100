//go:build amd64 && !noasm

package kernel

func searchBlockBulk(scale, zero *[BlockCols]float32, x []float32, base, mid *[BlockCols]float32, g BlockGrid) bool {
	if !hasAVX2 {
		return false
	}
	var best [BlockCols]float32
	for j := range best {
		scale[j], zero[j], best[j] = base[j], nearest(g.Center, g.Lo, g.Hi), -1
	}
	searchBlockAVX2(&scale[0], &zero[0], &x[0], len(x)/BlockCols, &base[0], &mid[0], g.Lo, g.Hi, g.Center, &g.Factors[0], len(g.Factors), &best[0])
	return true
}

func pairBytesBulk(dst, src []byte, mask, factor byte) (n int) {
	if n = len(src) &^ 63; n == 0 || !hasAVX2 {
		return 0
	}
	pairBytesAVX2(&dst[0], &src[0], n, 0x01010101*uint32(mask), 0x00010001*(1|uint32(factor)<<8))
	return n
}

func roundBlockBulk(dst []byte, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32, c Codes) bool {
	if !hasAVX2 || len(x) == 0 {
		return len(x) == 0
	}
	roundBlockAVX2(&dst[0], &x[0], len(x)/BlockCols, &scale[0], &zero[0], c.Lo, c.Hi)
	return true
}
