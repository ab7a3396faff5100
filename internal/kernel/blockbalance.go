package kernel

// mostLean is the most, in steps, that BalanceBlock moves numbers by.
const mostLean = 0.25

// BalanceBlock codes x, rows of BlockCols, as RoundBlock does, but keeps the sum of a column's errors near zero, as error
// diffusion does: carry holds what the rows before are too large by, so the numbers are all moved down by its share before they
// are rounded, by a quarter of a step at most; zeros stay zeros. The errors of these rows are added to carry. Values must be
// finite and no more than 2^20 steps.
func BalanceBlock(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32, carry *[BlockCols]float32, c Codes) {
	c.check()
	checkRows(len(x), BlockCols)
	rows := len(x) / BlockCols
	if rows == 0 {
		return
	}
	within("dst", len(dst), (rows-1)*stride+BlockCols)
	share := -1 / float32(rows)
	if !balanceBlockBulk(dst, stride, x, scale, zero, carry, c, share) {
		balanceBlockGo(dst, stride, x, scale, zero, carry, c, share)
	}
}

func balanceBlockGo(dst []byte, stride int, x []float32, scale *[BlockCols]float32, zero *[BlockCols]int32, carry *[BlockCols]float32, c Codes, share float32) {
	for j, s := range scale {
		lean := min(max(float32(carry[j]*share)/s, -mostLean), mostLean)
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
