//go:build !amd64 || noasm

package kernel

func doubleBulk([]float64, int, []float64, []float64, bool) bool { return false }
