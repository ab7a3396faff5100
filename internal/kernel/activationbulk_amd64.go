//go:build amd64 && !noasm

package kernel

func siluBulk(dst, x []float32) (n int) {
	if n = len(x) &^ (GemmPanel - 1); hasAVX512 && n > 0 {
		siluAVX512(&dst[0], &x[0], n)
	} else {
		n = 0
	}
	if rest := wholeFMA(len(x) - n); rest > 0 {
		siluAVX2(&dst[n], &x[n], rest)
		n += rest
	}
	return n
}

func geluBulk(dst, x []float32) (n int) {
	if n = len(x) &^ (GemmPanel - 1); hasAVX512 && n > 0 {
		geluAVX512(&dst[0], &x[0], n)
	} else {
		n = 0
	}
	if rest := wholeFMA(len(x) - n); rest > 0 {
		geluAVX2(&dst[n], &x[n], rest)
		n += rest
	}
	return n
}
