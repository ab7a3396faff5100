package kernel

// Requantize quantizes the sums of an integer product on whole rows of len(scale) columns, each column with its own scale and bias:
// float32(sum)·scale + bias, rounded after each step, then half to even, plus zero, saturated to c. Rows of dst are to bytes apart. The
// magnitude of zero must be below 2^20.
func Requantize(dst []byte, to int, sums []int32, scale, bias []float32, zero int32, c IntRange) {
	c.check()
	cols := len(scale)
	checkLen("bias", len(bias), cols)
	checkRows(len(sums), cols)
	if len(sums) == 0 {
		return
	}
	within("dst", len(dst), (len(sums)/cols-1)*to+cols)
	done := requantizeBulk(dst, to, sums, scale, bias, zero, c)
	if done == cols {
		return
	}
	for r := range len(sums) / cols {
		requantizeGo(dst[r*to+done:], sums[r*cols+done:(r+1)*cols], scale[done:], bias[done:], zero, c)
	}
}

func requantizeGo(dst []byte, row []int32, scale, bias []float32, zero int32, c IntRange) {
	dst, scale, bias = dst[:len(row)], scale[:len(row)], bias[:len(row)]
	for j, v := range row {
		dst[j] = c.quantize(float32(float32(v)*scale[j])+bias[j], zero)
	}
}
