package kernel

// Softmax writes e^x over the sum of e^x, of one row. Exponentials are those of Exp of the difference from the maximum,
// and their sum has the order of ReduceSum. A row with NaN, with +Inf or of -Inf alone gives NaN. dst may be x, but
// must not overlap it otherwise.
func Softmax(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	top := float64(ReduceMax(x))
	var l sumLanes
	n := expSumStoreBulk(&l, dst, x, top)
	l.addExpStoreGo(dst[n:], x[n:], top)
	// One division for the row instead of one for each element.
	MulScalar(dst, dst, float32(1/l.fold()))
}

// LogSoftmax writes the natural logarithm of Softmax, of one row, without the loss of precision of computing both in
// sequence. dst may be x, but must not overlap it otherwise.
func LogSoftmax(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	top := float64(ReduceMax(x))
	var l sumLanes
	n := expSumBulk(&l, x, top)
	l.addExpGo(x[n:], top)
	rest := l.fold()
	// NaN stays NaN; log64 needs a finite argument.
	if rest == rest {
		rest = log64(rest)
	}
	n = subTwiceBulk(dst, x, top, rest)
	subTwiceGo(dst[n:], x[n:], top, rest)
}

func (l *sumLanes) addExpStoreGo(dst, x []float32, top float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		e := expBelow(v, top)
		dst[i] = float32(e)
		l[i%8] += e
	}
}

func (l *sumLanes) addExpGo(x []float32, top float64) {
	for i, v := range x {
		l[i%8] += expBelow(v, top)
	}
}

// expBelow is e^(x-top) for x <= top.
func expBelow(x float32, top float64) float64 {
	return exp64(atLeast(float64(x)-top, expLeast))
}

// subTwiceGo subtracts in sequence: for the maximum the first difference is exact, and the rest keeps its precision.
func subTwiceGo(dst, x []float32, first, second float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(float64(v) - first - second)
	}
}
