//go:build !amd64 || noasm

package kernel

func roundSearchBulk(*RoundResult, []float32, int, []float32, RoundSpace) bool { return false }

func roundErrorsBulk(dst []byte, errors, x, w, scale []float32, zero []int32, c IntRange) (n int) {
	return 0
}
