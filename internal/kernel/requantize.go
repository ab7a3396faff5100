package kernel

// A Requantization quantizes the sums of an integer product, each column with its own scale and bias:
// float32(sum)·scale + bias, rounded after each step, then half to even, plus zero, saturated to the levels. The
// magnitude of zero must be below 2^20.
type Requantization struct {
	Scale, Bias []float32
	Zero        int32
	Levels      IntRange
}

// Part is the requantization of columns.
func (q Requantization) Part(from, to int) Requantization {
	q.Scale, q.Bias = q.Scale[from:to], q.Bias[from:to]
	return q
}

// Requantize quantizes whole rows of len(q.Scale) sums. Rows of dst are to bytes apart.
func Requantize(dst []byte, to int, sums []int32, q Requantization) {
	q.check(dst, to, len(sums))
	cols := len(q.Scale)
	if len(sums) == 0 {
		return
	}
	done := requantizeBulk(dst, to, sums, q)
	if done == cols {
		return
	}
	for r := range len(sums) / cols {
		requantizeGo(dst[r*to+done:], sums[r*cols+done:(r+1)*cols], q.Part(done, cols))
	}
}

// check panics unless all elements exist.
func (q Requantization) check(dst []byte, to, sums int) {
	q.Levels.check()
	cols := len(q.Scale)
	checkLen("bias", len(q.Bias), cols)
	checkRows(sums, cols)
	if sums > 0 {
		within("dst", len(dst), (sums/cols-1)*to+cols)
	}
}

func requantizeGo(dst []byte, row []int32, q Requantization) {
	dst, scale, bias := dst[:len(row)], q.Scale[:len(row)], q.Bias[:len(row)]
	for j, v := range row {
		dst[j] = q.Levels.quantize(float32(float32(v)*scale[j])+bias[j], q.Zero)
	}
}
