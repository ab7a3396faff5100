//go:build amd64 && !noasm

package kernel

func (c *Codebook) searchScaleBulk(magnitudes []byte, x []float32, block int) (n int) {
	if n = len(magnitudes) &^ 7; n == 0 || block%8 != 0 || !hasAVX2 {
		return 0
	}
	searchScaleAVX2(&magnitudes[0], &x[0], n, 4*block, &c.inverse[0], &c.square[0], &c.limits8[0][0])
	return n
}

func (c *Codebook) nearestBulk(dst []byte, x, inverse []float32, block int) int {
	if len(inverse) == 0 || block%8 != 0 || !hasAVX2 {
		return 0
	}
	nearestEntryAVX2(&dst[0], &x[0], &inverse[0], len(inverse), 4*block, &c.limits[0][0])
	return len(inverse)
}

func blockPeaksBulk(dst []uint32, x []float32, block int) (n int) {
	if n = len(dst) &^ 7; n == 0 || block%8 != 0 || !hasAVX2 {
		return 0
	}
	blockPeaksAVX2(&dst[0], &x[0], n, 4*block)
	return n
}
