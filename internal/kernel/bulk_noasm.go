//go:build !amd64 || noasm

package kernel

// Without assembly the bulk loops process nothing and leave all elements to the twins.

// Vectorized reports whether the CPU has assembly kernels: otherwise everything is plain Go.
func Vectorized() bool { return false }

func absMaxBitsBulk([]float32) (n int, top uint32) { return 0, 0 }

func colAbsMaxBitsBulk([]uint32, []float32) (cols int) { return 0 }

func minMaxBulk(x []float32) (n int, lo, hi int32) { return 0, ordered(x[0]), ordered(x[0]) }

func colMinMaxBulk(_, _, _ []float32) (cols int) { return 0 }

func quantizeBulk([]byte, []float32, float32, int32, IntRange) (n int) { return 0 }

func quantizeColsBulk(_ []byte, _, _ []float32, _ []int32, _ IntRange) (cols int) { return 0 }

func requantizeBulk([]byte, int, []int32, Requantization) (cols int) { return 0 }

func dequantizeBulk([]float32, []byte, bool, float32, int32) (n int) { return 0 }

func dequantizeColsBulk([]float32, []byte, bool, []float32, []int32) (cols int) { return 0 }

func f16FromF32Bulk([]uint16, []float32) (n int) { return 0 }

func f32FromF16Bulk([]float32, []uint16) (n int) { return 0 }

func bf16FromF32Bulk([]uint16, []float32) (n int) { return 0 }

func f32FromBF16Bulk([]float32, []uint16) (n int) { return 0 }

func filterRangeBulk(dst []uint32, _ []float32, _, _ uint32) (n, below int, out []uint32) {
	return 0, 0, dst
}

func zeroUpToBulk([]float32, uint32) (n int) { return 0 }

func countMagnitudeBulk([]float32, uint32) (n, count int) { return 0, 0 }

func nmRowsBulk([]float32, int, int) (n int) { return 0 }

func nmColsBulk(_ []float32, cols, n, m int) (done int) { return 0 }

func errorLanesBulk(_ *errorLanes, _, _ []float32) (n int) { return 0 }

func transposeWordsBulk[T any](_ []T, _ int, _ []T, _, _, _ int) (doneRows, doneCols int) {
	return 0, 0
}

func everySecondBulk[T any](_, _ []T) (n int) { return 0 }

func transposeBytesBulk(_ []byte, _ int, _ []byte, _, _, _ int) (rows, cols int) { return 0, 0 }

func nonZeroBulk(_, _ []byte, _ int) (n, set int) { return 0, 0 }

func compressBulk(dst, _ []byte, _ int) (n int, out []byte) { return 0, dst }

func expandBulk(_, _, _ []byte, _ int) (n, used int) { return 0, 0 }
