//go:build amd64 && !noasm

package kernel

func betweenBulk(mask []byte, x []float32, lo, hi float32) (n int) {
	if n = whole(len(x)); n > 0 {
		betweenAVX2(&mask[0], &x[0], n, lo, hi)
	}
	return n
}

func scaleMaskedBulk(dst, x []float32, mask []byte, on, off float32) (n int) {
	if n = whole(len(x)); n > 0 {
		kept := ^uint32(0)
		if off == 0 {
			kept = 0
		}
		scaleMaskedAVX2(&dst[0], &x[0], &mask[0], n, on, off, kept)
	}
	return n
}

func quantizeStochasticBulk(dst []byte, x []float32, lo, inverse float32, first uint32) (n int) {
	if n = whole(len(x)); n > 0 {
		quantizeStochasticAVX2(&dst[0], &x[0], n, lo, inverse, first)
	}
	return n
}
