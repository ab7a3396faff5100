package kernel

// GemmAtRows is the number of rows that GemmAt reads at once.
const GemmAtRows = 6

// GemmAt adds the product of m rows of x and a panel b of up to 16 columns to rows of c that are ldc elements apart: n sums over k of
// x[i*row+at[k]] · b[k*16+j]. So windows over an image are multiplied where they are. It reads m rows rounded up to a multiple of GemmAtRows.
// Sums are those of GemmFloat.
func GemmAt(c []float32, ldc int, x []float32, row int, at []int64, b []float32, m, n int) {
	if m <= 0 || n <= 0 || len(at) == 0 {
		return
	}
	within("c", len(c), (m-1)*ldc+n)
	within("b", len(b), len(at)*GemmPanel)
	last := (m+GemmAtRows-1)/GemmAtRows*GemmAtRows - 1
	for _, off := range at {
		if off < 0 || row < 0 {
			panic("kernel: negative offset")
		}
		within("x", len(x), last*row+int(off)+1)
	}
	whole := gemmAtBulk(c, ldc, x, row, at, b, m, n)
	if whole == m {
		return
	}
	var strip [GemmAtRows * GemmPanel]float32
	for i := whole; i < m; i += GemmAtRows {
		clear(strip[:])
		if gemmAtBulk(strip[:], GemmPanel, x[i*row:], row, at, b, GemmAtRows, GemmPanel) == 0 {
			gemmAtGo(strip[:], x[i*row:], row, at, b)
		}
		for r := range min(GemmAtRows, m-i) {
			sums := c[(i+r)*ldc:][:n]
			for j := range sums {
				sums[j] += strip[r*GemmPanel+j]
			}
		}
	}
}

// gemmAtGo adds a strip, with rounded products.
func gemmAtGo(c, x []float32, row int, at []int64, b []float32) {
	for r := range GemmAtRows {
		sums := c[r*GemmPanel:][:GemmPanel]
		for k, off := range at {
			v := x[r*row+int(off)]
			for j, w := range b[k*GemmPanel:][:GemmPanel] {
				sums[j] += float32(v * w)
			}
		}
	}
}
