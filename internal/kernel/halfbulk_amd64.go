//go:build amd64 && !noasm

package kernel

// packHalvesBulk packs the rows for which the elements that it reads exist.
func packHalvesBulk(dst []float32, x []uint16, rows, to, from, lane, n, stride int, keep bool) int {
	reads := GemmPanel * stride
	if !hasF16C || stride > 2 || len(x) < reads {
		return 0
	}
	if from > 0 {
		rows = min(rows, (len(x)-reads)/from+1)
	}
	if n < GemmPanel && !keep {
		for r := range rows {
			clear(dst[r*to:][:GemmPanel])
		}
	}
	d, mask := &dst[lane], &lanesBefore[GemmPanel-n]
	to, from = 4*to, 2*from
	switch {
	case stride == 1 && n == GemmPanel:
		packHalvesWhole1AVX2(d, &x[0], rows, to, from)
	case stride == 1:
		packHalvesPart1AVX2(d, &x[0], rows, to, from, mask)
	case n == GemmPanel:
		packHalvesWhole2AVX2(d, &x[0], rows, to, from)
	default:
		packHalvesPart2AVX2(d, &x[0], rows, to, from, mask)
	}
	return rows
}

func packHalvesAtBulk(dst []float32, x []uint16, at []int32, reach, lane, n, stride int, keep bool) bool {
	if !hasF16C || stride > 2 || len(x) < reach+GemmPanel*stride {
		return false
	}
	if n < GemmPanel && !keep {
		clear(dst[:len(at)*GemmPanel])
	}
	d, mask, rows := &dst[lane], &lanesBefore[GemmPanel-n], len(at)
	switch {
	case stride == 1 && n == GemmPanel:
		packHalvesAtWhole1AVX2(d, &x[0], rows, &at[0])
	case stride == 1:
		packHalvesAtPart1AVX2(d, &x[0], rows, &at[0], mask)
	case n == GemmPanel:
		packHalvesAtWhole2AVX2(d, &x[0], rows, &at[0])
	default:
		packHalvesAtPart2AVX2(d, &x[0], rows, &at[0], mask)
	}
	return true
}

// transposeHalvesBulk transposes whole squares of at most 8 columns, through a buffer if there are fewer.
func transposeHalvesBulk(dst []float32, dstStride int, src []uint16, srcStride, rows, cols int) int {
	rows &^= halfSquare - 1
	for rows > 0 && (rows-1)*srcStride+halfSquare > len(src) {
		rows -= halfSquare
	}
	if !hasF16C || rows == 0 {
		return 0
	}
	if cols == halfSquare {
		transposeHalves8AVX2(&dst[0], 4*dstStride, &src[0], 2*srcStride, rows)
		return rows
	}
	var square [halfSquare * halfSquare]float32
	for r := 0; r < rows; r += halfSquare {
		transposeHalves8AVX2(&square[0], 4*halfSquare, &src[r*srcStride], 2*srcStride, halfSquare)
		for c := range cols {
			*(*[halfSquare]float32)(dst[c*dstStride+r:]) = [halfSquare]float32(square[c*halfSquare:])
		}
	}
	return rows
}
