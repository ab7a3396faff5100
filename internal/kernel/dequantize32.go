package kernel

// DequantizeInt32 writes float32(q)·scale, like ONNX DequantizeLinear for int32, or Cast and Mul for the sums of an
// integer product.
func DequantizeInt32(dst []float32, q []int32, scale float32) {
	checkLen("dst", len(dst), len(q))
	n := dequantizeInt32Bulk(dst, q, scale)
	dequantizeInt32Go(dst[n:], q[n:], scale)
}

// DequantizeInt32Cols writes float32(q)·scale+bias on whole rows of len(scale) columns, each column with its own scale
// and bias, rounded after each step. bias may be nil.
func DequantizeInt32Cols(dst []float32, q []int32, scale, bias []float32) {
	cols := len(scale)
	checkLen("dst", len(dst), len(q))
	checkRows(len(q), cols)
	if bias != nil {
		checkLen("bias", len(bias), cols)
	}
	done := dequantizeInt32ColsBulk(dst, q, scale, bias)
	if done == cols {
		return
	}
	for at := 0; at < len(q); at += cols {
		dequantizeInt32ColsGo(dst[at+done:at+cols], q[at+done:at+cols], scale[done:], tail(bias, done))
	}
}

func dequantizeInt32Go(dst []float32, q []int32, scale float32) {
	dst = dst[:len(q)]
	for i, v := range q {
		dst[i] = float32(v) * scale
	}
}

func dequantizeInt32ColsGo(dst []float32, row []int32, scale, bias []float32) {
	dst, scale = dst[:len(row)], scale[:len(row)]
	if bias == nil {
		for j, v := range row {
			dst[j] = float32(v) * scale[j]
		}
		return
	}
	bias = bias[:len(row)]
	for j, v := range row {
		dst[j] = float32(float32(v)*scale[j]) + bias[j]
	}
}
