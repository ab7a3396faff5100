package kernel

// The largest finite Float16.
const largestHalf = 65504

// F16Saturated is F16FromF32, but values out of range become the largest finite ones. NaN is kept.
func F16Saturated(dst []uint16, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := f16SaturatedBulk(dst, x)
	f16SaturatedGo(dst[n:], x[n:])
}

func f16SaturatedGo(dst []uint16, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		if v == v {
			v = min(max(v, -largestHalf), largestHalf)
		}
		f16FromF32Go(dst[i:i+1], []float32{v})
	}
}

// PackHalves is PackLanes of Float16 elements.
func PackHalves(dst []float32, x []uint16, rows, to, from, lane, n, stride int, keep bool) {
	if rows <= 0 {
		return
	}
	checkLanes(len(dst), len(x), rows, to, from, lane, n, stride)
	done := 0
	if n > 0 {
		done = packHalvesBulk(dst, x, rows, to, from, lane, n, stride, keep)
	}
	if done < rows {
		packHalvesGo(dst[done*to:], x[min(done*from, len(x)):], rows-done, to, from, lane, n, stride, keep)
	}
}

func packHalvesGo(dst []float32, x []uint16, rows, to, from, lane, n, stride int, keep bool) {
	var elements [GemmPanel]uint16
	for r := range rows {
		row := dst[r*to:][:GemmPanel]
		if !keep {
			clear(row)
		}
		for i := range n {
			elements[i] = x[r*from+i*stride]
		}
		F32FromF16(row[lane:lane+n], elements[:n])
	}
}

// PackHalvesAt is PackLanesAt of Float16 elements.
func PackHalvesAt(dst []float32, x []uint16, at []int32, reach, lane, n, stride int, keep bool) {
	if len(at) == 0 {
		return
	}
	checkLanesAt(len(dst), len(x), len(at), reach, lane, n, stride)
	if !packHalvesAtBulk(dst, x, at, reach, lane, n, stride, keep) {
		packHalvesAtGo(dst, x, at, lane, n, stride, keep)
	}
}

func packHalvesAtGo(dst []float32, x []uint16, at []int32, lane, n, stride int, keep bool) {
	for r, off := range at {
		packHalvesGo(dst[r*GemmPanel:], x[off:], 1, GemmPanel, 0, lane, n, stride, keep)
	}
}

// TransposeHalves transposes a window of Float16 elements: src[r*srcStride+c] is converted to dst[c*dstStride+r].
func TransposeHalves(dst []float32, dstStride int, src []uint16, srcStride, rows, cols int) {
	checkWindow("src", len(src), srcStride, rows, cols)
	checkWindow("dst", len(dst), dstStride, cols, rows)
	for c := 0; c < cols; c += halfSquare {
		n := min(halfSquare, cols-c)
		done := transposeHalvesBulk(dst[c*dstStride:], dstStride, src[c:], srcStride, rows, n)
		for r := done; r < rows; r += halfSquare {
			transposeHalvesGo(dst[c*dstStride+r:], dstStride, src[r*srcStride+c:], srcStride, min(halfSquare, rows-r),
				n)
		}
	}
}

// halfSquare is the side of the squares of TransposeHalves.
const halfSquare = 8

// transposeHalvesGo transposes at most a square.
func transposeHalvesGo(dst []float32, dstStride int, src []uint16, srcStride, rows, cols int) {
	var square [halfSquare][halfSquare]uint16
	for r := range rows {
		for c, v := range src[r*srcStride:][:cols] {
			square[c][r] = v
		}
	}
	for c := range cols {
		F32FromF16(dst[c*dstStride:][:rows], square[c][:rows])
	}
}
