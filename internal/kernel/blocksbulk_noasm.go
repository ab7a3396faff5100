//go:build !amd64 || noasm

package kernel

func loadBlockBulk(dst []float32, lo, hi *[BlockCols]float32, src []float32, stride int) bool {
	return false
}

func searchBlockBulk(scale, zero, best *[BlockCols]float32, x []float32, base, mid *[BlockCols]float32,
	g BlockGrid) bool {
	return false
}

func balanceBlockBulk(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32,
	carry *[BlockCols]float32, c IntRange, fraction float32) bool {
	return false
}

func shrinkBlockBulk(zero *[BlockCols]float32, x []float32, inverse *[BlockCols]float32, lo, hi, lambda,
	fraction float32) bool {
	return false
}

func pairBytesBulk(dst, src []byte, mask, factor byte) (n int) { return 0 }

func roundBlockBulk(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32,
	c IntRange) bool {
	return false
}
