package kernel

// Dequantize writes float32(q-zero)*scale for every quantized value, like ONNX DequantizeLinear. Bytes are int8 if
// signed, else uint8.
func Dequantize(dst []float32, q []byte, signed bool, scale float32, zero int32) {
	checkLen("dst", len(dst), len(q))
	n := dequantizeBulk(dst, q, signed, scale, zero)
	dequantizeGo(dst[n:], q[n:], signed, scale, zero)
}

// DequantizeCols is Dequantize on whole rows of len(scale) columns, each column with its own scale and zero point. A
// nil zero means zeros.
func DequantizeCols(dst []float32, q []byte, signed bool, scale []float32, zero []int32) {
	cols := len(scale)
	checkLen("dst", len(dst), len(q))
	checkRows(len(q), cols)
	if zero != nil {
		checkLen("zero", len(zero), cols)
	}
	done := dequantizeColsBulk(dst, q, signed, scale, zero)
	if done == cols {
		return
	}
	for at := 0; at < len(q); at += cols {
		row := q[at+done : at+cols]
		dequantizeColsGo(dst[at+done:at+cols], row, signed, scale[done:], tail(zero, done))
	}
}

func dequantizeGo(dst []float32, q []byte, signed bool, scale float32, zero int32) {
	dst = dst[:len(q)]
	for i, b := range q {
		dst[i] = float32(toInt(b, signed)-zero) * scale
	}
}

func dequantizeColsGo(dst []float32, row []byte, signed bool, scale []float32, zero []int32) {
	dst, scale = dst[:len(row)], scale[:len(row)]
	for j, b := range row {
		q := toInt(b, signed)
		if zero != nil {
			q -= zero[j]
		}
		dst[j] = float32(q) * scale[j]
	}
}

func toInt(b byte, signed bool) int32 {
	if signed {
		return int32(int8(b))
	}
	return int32(b)
}
