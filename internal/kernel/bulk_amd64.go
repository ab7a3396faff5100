//go:build amd64 && !noasm

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Every bulk function processes a prefix with its assembly and returns its length; the plain Go twin processes the
// rest. On a CPU without the instructions the prefix is empty, as in bulk_noasm.go.

var (
	hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT
	hasF16C = hasAVX2 && cpuid1()>>29&1 == 1
)

// Vectorized reports whether the CPU has assembly kernels: otherwise everything is plain Go.
func Vectorized() bool { return hasAVX2 }

// whole is the length of n elements in whole vectors of 8, for the assembly.
func whole(n int) int {
	if !hasAVX2 {
		return 0
	}
	return n &^ 7
}

func absMaxBitsBulk(x []float32) (n int, top uint32) {
	if n = whole(len(x)); n == 0 {
		return 0, 0
	}
	return n, absMaxBitsAVX2(&x[0], n)
}

func colAbsMaxBitsBulk(acc []uint32, x []float32) (cols int) {
	if cols = whole(len(acc)); cols == 0 {
		return 0
	}
	stride := len(acc)
	// Four rows at once read and write the accumulators a quarter as often.
	for ; len(x) >= 4*stride; x = x[4*stride:] {
		colAbsMaxBits4AVX2(&acc[0], &x[0], 4*stride, cols)
	}
	for ; len(x) > 0; x = x[stride:] {
		colAbsMaxBits1AVX2(&acc[0], &x[0], 4*stride, cols)
	}
	return cols
}

func minMaxBulk(x []float32) (n int, lo, hi int32) {
	if n = whole(len(x)); n == 0 {
		return 0, ordered(x[0]), ordered(x[0])
	}
	lo, hi = minMaxAVX2(&x[0], n)
	return n, lo, hi
}

func colMinMaxBulk(lo, hi, x []float32) (cols int) {
	if cols = whole(len(lo)); cols == 0 {
		return 0
	}
	stride := len(lo)
	for ; len(x) >= 4*stride; x = x[4*stride:] {
		colMinMax4AVX2(&lo[0], &hi[0], &x[0], 4*stride, cols)
	}
	for ; len(x) > 0; x = x[stride:] {
		colMinMax1AVX2(&lo[0], &hi[0], &x[0], 4*stride, cols)
	}
	return cols
}

// prefetchAhead bounds, in elements, the prefetch distance of quantizeAVX2: the next row, if rows are contiguous.
const prefetchAhead = 1 << 12

func quantizeBulk(dst []byte, x []float32, scale float32, zero int32, c IntRange) (n int) {
	if n = whole(len(x)); n > 0 {
		// While a row is divided, the next one is prefetched: from memory, 1 MiB takes 62 instead of 99 µs in rows of
		// 768 elements, and 68 instead of 98 in rows of 4096. Loops that memory bounds do not prefetch: some were
		// slower with it.
		ahead := 4 * min(len(x), prefetchAhead)
		quantizeAVX2(&dst[0], &x[0], n, ahead, scale, zero-roundShiftBits, c.Lo, c.Hi)
	}
	return n
}

func quantizeColsBulk(dst []byte, x, scale []float32, zero []int32, c IntRange) (cols int) {
	if cols = whole(len(scale)); cols == 0 {
		return 0
	}
	for at := 0; at < len(x); at += len(scale) {
		if zero == nil {
			quantizeColsAVX2(&dst[at], &x[at], cols, &scale[0], c.Lo, c.Hi)
		} else {
			quantizeColsZeroAVX2(&dst[at], &x[at], cols, &scale[0], &zero[0], c.Lo, c.Hi)
		}
	}
	return cols
}

func requantizeBulk(dst []byte, to int, sums []int32, q Requantization) (cols int) {
	n := len(q.Scale)
	if cols = whole(n); cols == 0 {
		return 0
	}
	for r := range len(sums) / n {
		requantizeAVX2(&dst[r*to], &sums[r*n], cols, &q.Scale[0], &q.Bias[0], q.Zero-roundShiftBits, q.Levels.Lo,
			q.Levels.Hi)
	}
	return cols
}

// both16 repeats a level of 16 bits in both halves.
func both16(level int32) uint32 { return uint32(uint16(level)) * (1<<16 | 1) }

// signFlip converts int8 to uint8 and back.
func signFlip(signed bool) uint32 {
	if signed {
		return 0x80
	}
	return 0
}

func dequantizeBulk(dst []float32, q []byte, signed bool, scale float32, zero int32) (n int) {
	if n = whole(len(q)); n > 0 {
		dequantizeAVX2(&dst[0], &q[0], n, signFlip(signed), scale, zero)
	}
	return n
}

func dequantizeColsBulk(dst []float32, q []byte, signed bool, scale []float32, zero []int32) (cols int) {
	if cols = whole(len(scale)); cols == 0 {
		return 0
	}
	flip := signFlip(signed)
	for at := 0; at < len(q); at += len(scale) {
		if zero == nil {
			dequantizeColsAVX2(&dst[at], &q[at], cols, flip, &scale[0])
		} else {
			dequantizeColsZeroAVX2(&dst[at], &q[at], cols, flip, &scale[0], &zero[0])
		}
	}
	return cols
}

func f16FromF32Bulk(dst []uint16, x []float32) (n int) {
	if !hasF16C || len(x) == 0 {
		return 0
	}
	if n = whole(len(x)); n > 0 {
		f16FromF32AVX2(&dst[0], &x[0], n)
	}
	if n < len(x) {
		from, to := lastVector(x[n:]), [8]uint16{}
		f16FromF32AVX2(&to[0], &from[0], len(to))
		copy(dst[n:], to[:])
	}
	return len(x)
}

func f32FromF16Bulk(dst []float32, x []uint16) (n int) {
	if !hasF16C || len(x) == 0 {
		return 0
	}
	if n = whole(len(x)); n > 0 {
		f32FromF16AVX2(&dst[0], &x[0], n)
	}
	if n < len(x) {
		from, to := lastVector(x[n:]), [8]float32{}
		f32FromF16AVX2(&to[0], &from[0], len(to))
		copy(dst[n:], to[:])
	}
	return len(x)
}

func f16SaturatedBulk(dst []uint16, x []float32) (n int) {
	if !hasF16C || len(x) == 0 {
		return 0
	}
	if n = whole(len(x)); n > 0 {
		f16SaturatedAVX2(&dst[0], &x[0], n, -largestHalf, largestHalf)
	}
	if n < len(x) {
		from, to := lastVector(x[n:]), [8]uint16{}
		f16SaturatedAVX2(&to[0], &from[0], len(to), -largestHalf, largestHalf)
		copy(dst[n:], to[:])
	}
	return len(x)
}

// lastVector is fewer than 8 elements as a vector: Float16 is slow to convert without vector instructions.
func lastVector[T any](x []T) (v [8]T) {
	copy(v[:], x)
	return v
}

func bf16FromF32Bulk(dst []uint16, x []float32) (n int) {
	if n = whole(len(x)); n > 0 {
		bf16FromF32AVX2(&dst[0], &x[0], n)
	}
	return n
}

func f32FromBF16Bulk(dst []float32, x []uint16) (n int) {
	if n = whole(len(x)); n > 0 {
		f32FromBF16AVX2(&dst[0], &x[0], n)
	}
	return n
}

// filterBlock is the maximum number of elements copied to a buffer on the stack, with space for the extra vector that
// the assembly may write; dst is written by append alone.
const filterBlock = 1024

func filterRangeBulk(dst []uint32, x []float32, lo, hi uint32) (n, below int, out []uint32) {
	// The assembly stores whole vectors, also after the last element that it keeps.
	var buf [filterBlock + 8]uint32
	for end := whole(len(x)); n < end; {
		count := min(end-n, filterBlock)
		less, taken := filterRangeAVX2(&buf[0], &x[n], count, lo, hi)
		dst = append(dst, buf[:taken]...)
		below, n = below+less, n+count
	}
	return n, below, dst
}

func zeroUpToBulk(x []float32, limit uint32) (n int) {
	if n = whole(len(x)); n > 0 {
		zeroUpToAVX2(&x[0], n, limit)
	}
	return n
}

func countMagnitudeBulk(x []float32, b uint32) (n, count int) {
	if n = whole(len(x)); n == 0 {
		return 0, 0
	}
	return n, countMagnitudeAVX2(&x[0], n, b)
}

func nmRowsBulk(x []float32, n, m int) (done int) {
	// Only groups of four, 2:4 and the like, have a kernel.
	if done = whole(len(x)); m != 4 || done == 0 {
		return 0
	}
	nmRows4AVX2(&x[0], done, int32(n-3))
	return done
}

func nmColsBulk(x []float32, cols, n, m int) (done int) {
	if done = whole(cols); m != 4 || done == 0 || len(x) != 4*cols {
		return 0
	}
	nmCols4AVX2(&x[0], 4*cols, done, int32(n-3))
	return done
}

func errorLanesBulk(l *errorLanes, ref, got []float32) (n int) {
	if n = whole(len(ref)); n > 0 {
		errorLanesAVX2(&l.ref2[0], &ref[0], &got[0], n)
	}
	return n
}

// transposeRows is the number of rows per block, so that the cache lines of a block, read for 16 columns, are still in
// the L1 or L2 cache for the other columns on them.
const transposeRows = 512

func transposeBytesBulk(dst []byte, dstStride int, src []byte, srcStride, rows, cols int) (doneRows, doneCols int) {
	if !hasAVX2 || rows < 16 || cols < 16 {
		return 0, 0
	}
	doneRows, doneCols = rows&^15, cols&^15
	for r := 0; r < doneRows; r += transposeRows {
		n := min(transposeRows, doneRows-r)
		for c := 0; c < doneCols; c += 16 {
			transposeBytes16AVX2(&dst[c*dstStride+r], dstStride, &src[r*srcStride+c], srcStride, n)
		}
	}
	return doneRows, doneCols
}

// transposeWordsBulk transposes whole squares of elements of four bytes.
func transposeWordsBulk[T any](dst []T, dstStride int, src []T, srcStride, rows, cols int) (doneRows, doneCols int) {
	const size, square = 4, 8
	if unsafe.Sizeof(*new(T)) != size || !hasAVX2 || rows < square || cols < square {
		return 0, 0
	}
	for next := 0; next < rows; {
		n := min(transposeRows, (rows-next)&^(square-1))
		// Element by element, the ninth weight of a 3×3 kernel took as long as the other eight in vectors.
		r := min(next, rows-square) // the last squares may overlap those before, in both directions
		n = max(n, square)
		for next := 0; next < cols; next += square {
			c := min(next, cols-square)
			to, from := (*uint32)(unsafe.Pointer(&dst[c*dstStride+r])), (*uint32)(unsafe.Pointer(&src[r*srcStride+c]))
			transposeWords8AVX2(to, size*dstStride, from, size*srcStride, n)
		}
		next = r + n
	}
	return rows, cols
}

// everySecondBulk copies whole vectors of elements of four bytes.
func everySecondBulk[T any](dst, src []T) (n int) {
	if n = whole(len(dst)); n == 0 || unsafe.Sizeof(*new(T)) != 4 {
		return 0
	}
	everySecondAVX2((*uint32)(unsafe.Pointer(&dst[0])), (*uint32)(unsafe.Pointer(&src[0])), n)
	return n
}

func nonZeroBulk(mask, data []byte, size int) (n, set int) {
	n = whole(len(data) / size)
	if size < 4 {
		n &^= 31
	}
	if n == 0 {
		return 0, 0
	}
	switch size {
	case 1:
		return n, nonZero1AVX2(&mask[0], &data[0], n)
	case 2:
		return n, nonZero2AVX2(&mask[0], &data[0], n)
	case 4:
		return n, nonZero4AVX2(&mask[0], &data[0], n)
	default:
		return n, nonZero8AVX2(&mask[0], &data[0], n)
	}
}

func compressBulk(dst, data []byte, size int) (n int, out []byte) {
	var buf [filterBlock*4 + 32]byte
	block := filterBlock * 4 / size
	for end := whole(len(data) / size); n < end; {
		count := min(end-n, block)
		written := compressAVX2(&buf[0], &data[n*size], count, size)
		dst = append(dst, buf[:written]...)
		n += count
	}
	return n, dst
}

// compressAVX2 calls by name, because a call through a function value would move the caller's buffer to the heap.
func compressAVX2(out, data *byte, n, size int) (written int) {
	switch size {
	case 1:
		return compress1AVX2(out, data, n)
	case 2:
		return compress2AVX2(out, data, n)
	case 4:
		return compress4AVX2(out, data, n)
	default:
		return compress8AVX2(out, data, n)
	}
}

func expandBulk(dst, mask, values []byte, size int) (n, used int) {
	// The assembly reads a whole vector of values for each byte of the mask: last is the last address where that is
	// within values.
	bytes := whole(len(dst)/size) / 8
	if bytes == 0 || len(values) < 8*size {
		return 0, 0
	}
	d, m, v, last := &dst[0], &mask[0], &values[0], &values[len(values)-8*size]
	switch size {
	case 1:
		n, used = expand1AVX2(d, m, v, last, bytes)
	case 2:
		n, used = expand2AVX2(d, m, v, last, bytes)
	case 4:
		n, used = expand4AVX2(d, m, v, last, bytes)
	default:
		n, used = expand8AVX2(d, m, v, last, bytes)
	}
	return n * 8, used
}
