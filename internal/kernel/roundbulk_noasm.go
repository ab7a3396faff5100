//go:build !amd64 || noasm

package kernel

func roundCostBulk(*RoundSums, []float32, int, []float32, *RoundGrid) bool { return false }
