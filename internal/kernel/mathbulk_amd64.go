//go:build amd64 && !noasm

package kernel

// Bulk functions of vector mathematics in float32, like bulk_amd64.go for other kernels.

func addBulk(dst, a, b []float32) (n int) {
	if n = whole(len(a)); n > 0 {
		addAVX2(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func subBulk(dst, a, b []float32) (n int) {
	if n = whole(len(a)); n > 0 {
		subAVX2(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func mulBulk(dst, a, b []float32) (n int) {
	if n = whole(len(a)); n > 0 {
		mulAVX2(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func divBulk(dst, a, b []float32) (n int) {
	if n = whole(len(a)); n > 0 {
		divAVX2(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func maxBulk(dst, a, b []float32) (n int) {
	if n = whole(len(a)); n > 0 {
		maxAVX2(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func minBulk(dst, a, b []float32) (n int) {
	if n = whole(len(a)); n > 0 {
		minAVX2(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func axpyBulk(y []float32, a float32, x []float32) (n int) {
	if n = whole(len(x)); n > 0 {
		axpyAVX2(&y[0], &y[0], &x[0], n, a)
	}
	return n
}

func addScalarBulk(dst, x []float32, s float32) (n int) {
	if n = whole(len(x)); n > 0 {
		addScalarAVX2(&dst[0], &x[0], n, s)
	}
	return n
}

func scalarSubBulk(dst, x []float32, s float32) (n int) {
	if n = whole(len(x)); n > 0 {
		scalarSubAVX2(&dst[0], &x[0], n, s)
	}
	return n
}

func mulScalarBulk(dst, x []float32, s float32) (n int) {
	if n = whole(len(x)); n > 0 {
		mulScalarAVX2(&dst[0], &x[0], n, s)
	}
	return n
}

func divScalarBulk(dst, x []float32, s float32) (n int) {
	if n = whole(len(x)); n > 0 {
		divScalarAVX2(&dst[0], &x[0], n, s)
	}
	return n
}

func scalarDivBulk(dst, x []float32, s float32) (n int) {
	if n = whole(len(x)); n > 0 {
		scalarDivAVX2(&dst[0], &x[0], n, s)
	}
	return n
}

func maxScalarBulk(dst, x []float32, s float32) (n int) {
	if n = whole(len(x)); n > 0 {
		maxScalarAVX2(&dst[0], &x[0], n, s)
	}
	return n
}

func minScalarBulk(dst, x []float32, s float32) (n int) {
	if n = whole(len(x)); n > 0 {
		minScalarAVX2(&dst[0], &x[0], n, s)
	}
	return n
}

func scaleShiftBulk(dst, x []float32, scale, shift float32) (n int) {
	if n = whole(len(x)); n > 0 {
		scaleShiftAVX2(&dst[0], &x[0], n, scale, shift)
	}
	return n
}

func absBulk(dst, x []float32) (n int) {
	if n = whole(len(x)); n > 0 {
		absAVX2(&dst[0], &x[0], n)
	}
	return n
}

func negBulk(dst, x []float32) (n int) {
	if n = whole(len(x)); n > 0 {
		negAVX2(&dst[0], &x[0], n)
	}
	return n
}

func reluBulk(dst, x []float32) (n int) {
	if n = whole(len(x)); n > 0 {
		reluAVX2(&dst[0], &x[0], n)
	}
	return n
}

func leakyReluBulk(dst, x []float32, alpha float32) (n int) {
	if n = whole(len(x)); n > 0 {
		leakyReluAVX2(&dst[0], &x[0], n, alpha)
	}
	return n
}

func clipBulk(dst, x []float32, lo, hi float32) (n int) {
	if n = whole(len(x)); n > 0 {
		clipAVX2(&dst[0], &x[0], n, lo, hi)
	}
	return n
}

func hardSigmoidBulk(dst, x []float32, alpha, beta float32) (n int) {
	if n = whole(len(x)); n > 0 {
		hardSigmoidAVX2(&dst[0], &x[0], n, alpha, beta)
	}
	return n
}

func hardSwishBulk(dst, x []float32) (n int) {
	if n = whole(len(x)); n > 0 {
		hardSwishAVX2(&dst[0], &x[0], n)
	}
	return n
}

func sqrtBulk(dst, x []float32) (n int) {
	if n = whole(len(x)); n > 0 {
		sqrtAVX2(&dst[0], &x[0], n)
	}
	return n
}

func dequantizeInt32Bulk(dst []float32, q []int32, scale float32) (n int) {
	if n = whole(len(q)); n > 0 {
		dequantizeInt32AVX2(&dst[0], &q[0], n, scale)
	}
	return n
}

func dequantizeInt32ColsBulk(dst []float32, q []int32, scale, bias []float32) (cols int) {
	if cols = whole(len(scale)); cols == 0 {
		return 0
	}
	for at := 0; at < len(q); at += len(scale) {
		if bias == nil {
			dequantizeInt32ColsAVX2(&dst[at], &q[at], cols, &scale[0])
		} else {
			dequantizeInt32ColsBiasAVX2(&dst[at], &q[at], cols, &scale[0], &bias[0])
		}
	}
	return cols
}

func (s *AdamStep) bulk(w, g, m, v []float32) (n int) {
	if n = whole(len(w)); n > 0 {
		adamAVX2(&w[0], &g[0], &m[0], &v[0], n, s.Coupled, s.Rest1, s.Rest2, s.Beta2, s.Correction, s.Epsilon,
			s.Shrink, s.Rate)
	}
	return n
}
