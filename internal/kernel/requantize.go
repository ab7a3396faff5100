package kernel

// Requantize quantizes the sums of an integer product on whole rows of len(scale) columns, each column with its own scale and bias:
// float32(sum)·scale + bias, rounded after each step, then half to even, plus zero, saturated to c. The magnitude of zero must be below 2^20.
func Requantize(dst []byte, sums []int32, scale, bias []float32, zero int32, c IntRange) {
	c.check()
	cols := len(scale)
	checkLen("dst", len(dst), len(sums))
	checkLen("bias", len(bias), cols)
	checkRows(len(sums), cols)
	done := requantizeBulk(dst, sums, scale, bias, zero, c)
	if done == cols {
		return
	}
	for at := 0; at < len(sums); at += cols {
		requantizeGo(dst[at+done:at+cols], sums[at+done:at+cols], scale[done:], bias[done:], zero, c)
	}
}

func requantizeGo(dst []byte, row []int32, scale, bias []float32, zero int32, c IntRange) {
	dst, scale, bias = dst[:len(row)], scale[:len(row)], bias[:len(row)]
	for j, v := range row {
		dst[j] = c.quantize(float32(float32(v)*scale[j])+bias[j], zero)
	}
}
