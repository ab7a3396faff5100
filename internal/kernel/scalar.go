package kernel

// The functions of this file are those of arithmetic.go with a scalar operand s. dst may be x, but must not overlap it
// otherwise.

// AddScalar writes x+s.
func AddScalar(dst, x []float32, s float32) {
	checkLen("dst", len(dst), len(x))
	n := addScalarBulk(dst, x, s)
	addScalarGo(dst[n:], x[n:], s)
}

// SubScalar writes x-s.
func SubScalar(dst, x []float32, s float32) { AddScalar(dst, x, -s) }

// ScalarSub writes s-x.
func ScalarSub(dst []float32, s float32, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := scalarSubBulk(dst, x, s)
	scalarSubGo(dst[n:], x[n:], s)
}

// MulScalar writes x·s.
func MulScalar(dst, x []float32, s float32) {
	checkLen("dst", len(dst), len(x))
	n := mulScalarBulk(dst, x, s)
	mulScalarGo(dst[n:], x[n:], s)
}

// DivScalar writes x/s.
func DivScalar(dst, x []float32, s float32) {
	checkLen("dst", len(dst), len(x))
	n := divScalarBulk(dst, x, s)
	divScalarGo(dst[n:], x[n:], s)
}

// ScalarDiv writes s/x.
func ScalarDiv(dst []float32, s float32, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := scalarDivBulk(dst, x, s)
	scalarDivGo(dst[n:], x[n:], s)
}

// MaxScalar writes the maximum of x and s like Max.
func MaxScalar(dst, x []float32, s float32) {
	checkLen("dst", len(dst), len(x))
	n := maxScalarBulk(dst, x, s)
	maxScalarGo(dst[n:], x[n:], s)
}

// MinScalar writes the minimum of x and s like Min.
func MinScalar(dst, x []float32, s float32) {
	checkLen("dst", len(dst), len(x))
	n := minScalarBulk(dst, x, s)
	minScalarGo(dst[n:], x[n:], s)
}

// ScaleShift writes x·scale+shift in two roundings: BatchNormalization of one channel.
func ScaleShift(dst, x []float32, scale, shift float32) {
	checkLen("dst", len(dst), len(x))
	n := scaleShiftBulk(dst, x, scale, shift)
	scaleShiftGo(dst[n:], x[n:], scale, shift)
}

func addScalarGo(dst, x []float32, s float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = v + s
	}
}

func scalarSubGo(dst, x []float32, s float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = s - v
	}
}

func mulScalarGo(dst, x []float32, s float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = v * s
	}
}

func divScalarGo(dst, x []float32, s float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = v / s
	}
}

func scalarDivGo(dst, x []float32, s float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = s / v
	}
}

func maxScalarGo(dst, x []float32, s float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = max(v, s)
	}
}

func minScalarGo(dst, x []float32, s float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = min(v, s)
	}
}

func scaleShiftGo(dst, x []float32, scale, shift float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(v*scale) + shift
	}
}
