package kernel

// The functions of this file work element by element. dst may be a or b, but must not overlap them otherwise. NaN gives
// NaN, whose payload depends on the CPU.

// Add writes a+b.
func Add(dst, a, b []float32) {
	checkPair(dst, a, b)
	n := addBulk(dst, a, b)
	addGo(dst[n:], a[n:], b[n:])
}

// Sub writes a-b.
func Sub(dst, a, b []float32) {
	checkPair(dst, a, b)
	n := subBulk(dst, a, b)
	subGo(dst[n:], a[n:], b[n:])
}

// Mul writes a·b.
func Mul(dst, a, b []float32) {
	checkPair(dst, a, b)
	n := mulBulk(dst, a, b)
	mulGo(dst[n:], a[n:], b[n:])
}

// Div writes a/b.
func Div(dst, a, b []float32) {
	checkPair(dst, a, b)
	n := divBulk(dst, a, b)
	divGo(dst[n:], a[n:], b[n:])
}

// Max writes the maximum of a and b, like ONNX Max: NaN if either is, and +0 > -0.
func Max(dst, a, b []float32) {
	checkPair(dst, a, b)
	n := maxBulk(dst, a, b)
	maxGo(dst[n:], a[n:], b[n:])
}

// Min writes the minimum of a and b, like ONNX Min: NaN if either is, and -0 < +0.
func Min(dst, a, b []float32) {
	checkPair(dst, a, b)
	n := minBulk(dst, a, b)
	minGo(dst[n:], a[n:], b[n:])
}

// Axpy adds a·x to y, in two roundings.
func Axpy(y []float32, a float32, x []float32) {
	checkLen("y", len(y), len(x))
	n := axpyBulk(y, a, x)
	axpyGo(y[n:], a, x[n:])
}

func checkPair(dst, a, b []float32) {
	checkLen("dst", len(dst), len(a))
	checkLen("b", len(b), len(a))
}

func addGo(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

func subGo(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v - b[i]
	}
}

func mulGo(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v * b[i]
	}
}

func divGo(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v / b[i]
	}
}

func maxGo(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = max(v, b[i])
	}
}

func minGo(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = min(v, b[i])
	}
}

// axpyGo converts the product, which prevents a fused multiply-add.
func axpyGo(y []float32, a float32, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float32(a * v)
	}
}
