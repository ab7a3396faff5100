//go:build amd64 && !noasm

package kernel

// Bulk functions of vector mathematics in float64, which use fused multiply-adds.

// wholeFMA is whole for CPUs with FMA.
func wholeFMA(n int) int {
	if !hasFMA {
		return 0
	}
	return whole(n)
}

func expBulk(dst, x []float32) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		expAVX512(&dst[0], &x[0], n)
	default:
		expAVX2(&dst[0], &x[0], n)
	}
	return n
}

func sigmoidBulk(dst, x []float32) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		sigmoidAVX512(&dst[0], &x[0], n)
	default:
		sigmoidAVX2(&dst[0], &x[0], n)
	}
	return n
}

func geluTanhBulk(dst, x []float32) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		geluTanhAVX512(&dst[0], &x[0], n)
	default:
		geluTanhAVX2(&dst[0], &x[0], n)
	}
	return n
}

func tanhBulk(dst, x []float32) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		tanhAVX512(&dst[0], &x[0], n)
	default:
		tanhAVX2(&dst[0], &x[0], n)
	}
	return n
}

func erfBulk(dst, x []float32) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		erfAVX512(&dst[0], &x[0], n)
	default:
		erfAVX2(&dst[0], &x[0], n)
	}
	return n
}

func logBulk(dst, x []float32) (n int) {
	if n = wholeFMA(len(x)); n > 0 {
		logAVX2(&dst[0], &x[0], n)
	}
	return n
}

func softplusBulk(dst, x []float32) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		softplusAVX512(&dst[0], &x[0], n)
	default:
		softplusAVX2(&dst[0], &x[0], n)
	}
	return n
}

func sinBulk(dst, x []float32) (n int) {
	for end := wholeFMA(len(x)); n < end; {
		n += sinAVX2(&dst[n], &x[n], end-n)
		if n < end {
			each(dst[n:n+8], x[n:n+8], sinGo)
			n += 8
		}
	}
	return n
}

func cosBulk(dst, x []float32) (n int) {
	for end := wholeFMA(len(x)); n < end; {
		n += cosAVX2(&dst[n], &x[n], end-n)
		if n < end {
			each(dst[n:n+8], x[n:n+8], cosGo)
			n += 8
		}
	}
	return n
}

func sumBulk(l *sumLanes, x []float32) (n int) {
	if n = wholeFMA(len(x)); n > 0 {
		sumAVX2(&l[0], &x[0], n)
	}
	return n
}

func dotBulk(l *sumLanes, a, b []float32) (n int) {
	if n = wholeFMA(len(a)); n > 0 {
		dotAVX2(&l[0], &a[0], &b[0], n)
	}
	return n
}

func dotRowsBulk(dst, a, rows []float32, stride int, factor float32) (n int) {
	if n = len(dst) &^ 3; !hasFMA || n == 0 || len(a) == 0 || len(a)%8 != 0 {
		return 0
	}
	dotRowsAVX2(&dst[0], &a[0], &rows[0], 4*stride, len(a), n, factor)
	return n
}

func squaresBulk(l *sumLanes, x []float32, center float64) (n int) {
	if n = wholeFMA(len(x)); n > 0 {
		squaresAVX2(&l[0], &x[0], n, center)
	}
	return n
}

func expSumStoreBulk(l *sumLanes, dst, x []float32, top float64) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		expSumStoreAVX512(&l[0], &dst[0], &x[0], n, top)
	default:
		expSumStoreAVX2(&l[0], &dst[0], &x[0], n, top)
	}
	return n
}

func expSumBulk(l *sumLanes, x []float32, top float64) (n int) {
	switch n = wholeFMA(len(x)); {
	case n == 0:
	case hasAVX512:
		expSumAVX512(&l[0], &x[0], n, top)
	default:
		expSumAVX2(&l[0], &x[0], n, top)
	}
	return n
}

func subTwiceBulk(dst, x []float32, first, second float64) (n int) {
	if n = wholeFMA(len(x)); n > 0 {
		subTwiceAVX2(&dst[0], &x[0], n, first, second)
	}
	return n
}

func scaleAboutBulk(dst, x, gamma []float32, center, scale float64) (n int) {
	if n = wholeFMA(len(x)); n > 0 {
		scaleAboutAVX2(&dst[0], &x[0], &gamma[0], n, center, scale)
	}
	return n
}

func scaleShiftAboutBulk(dst, x, gamma, beta []float32, center, scale float64) (n int) {
	if n = wholeFMA(len(x)); n > 0 {
		scaleShiftAboutAVX2(&dst[0], &x[0], &gamma[0], &beta[0], n, center, scale)
	}
	return n
}
