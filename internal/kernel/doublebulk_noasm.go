//go:build !amd64 || noasm

package kernel

func doubleBulk([]float64, int, []float64, []float64, bool) bool { return false }

func packEightBulk(_, _ []float64, _, _ int, _ float64) bool { return false }
