package kernel

// maxShift is the maximum shift, in steps, of BalanceBlock.
const maxShift = 0.25

// BalanceBlock quantizes x, rows of BlockCols, like RoundBlock, but keeps the sum of a column's errors near zero by
// error diffusion: carry is the accumulated error of the preceding rows; all numbers are shifted down by a fraction of
// it before rounding, by a quarter of a step at most; zeros stay zeros. The errors of these rows are added to carry.
// Values must be finite and at most 2^20 steps.
func BalanceBlock(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32,
	carry *[BlockCols]float32, c IntRange) {
	c.check()
	checkRows(len(x), BlockCols)
	rows := len(x) / BlockCols
	if rows == 0 {
		return
	}
	within("dst", len(dst), (rows-1)*stride+BlockCols)
	fraction := -1 / float32(rows)
	if !balanceBlockBulk(dst, stride, x, scale, zero, carry, c, fraction) {
		balanceBlockGo(dst, stride, x, scale, zero, carry, c, fraction)
	}
}

func balanceBlockGo(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32,
	carry *[BlockCols]float32, c IntRange, fraction float32) {
	for j, s := range scale {
		lean := min(max(float32(carry[j]*fraction)/s, -maxShift), maxShift)
		lo, hi := float32(c.Lo-zero[j]), float32(c.Hi-zero[j])
		sum := float32(0)
		for i := range len(x) / BlockCols {
			v := x[i*BlockCols+j] / s
			q := nearest(v+lean, lo, hi)
			sum += q - v
			dst[i*stride+j] = byte(int32(q) + zero[j])
		}
		carry[j] += float32(sum * s)
	}
}
