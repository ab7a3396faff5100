//go:build amd64 && !noasm

package kernel

// doubleBulk stores the product of a strip and a panel in a tile of c, or adds it there, and reports whether the CPU has the instructions.
func doubleBulk(c []float64, ldc int, a, b []float64, add bool) bool {
	if !hasFMA {
		return false
	}
	const size = 8
	_ = c[(DoubleRows-1)*ldc+DoublePanel-1]
	double6x8AVX2(len(a)/DoubleRows, &a[0], size, size*DoubleRows, &b[0], size*DoublePanel, 0, &c[0], size*ldc, asInt(add))
	return true
}

// packEightBulk packs a whole panel, and reports whether the CPU has the instructions.
func packEightBulk(dst, src []float64, row, k int, factor float64) bool {
	if hasAVX2 {
		packEightAVX2(&dst[0], &src[0], 8*row, k, factor)
	}
	return hasAVX2
}
