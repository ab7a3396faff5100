//go:build !amd64 || noasm

package kernel

// Without assembly the twins do everything.

func packLanesBulk(_, _ []float32, _, _, _, _, _, _ int, _ bool) bool { return false }

func packLanesAtBulk(_, _ []float32, _ []int32, _, _, _ int, _ bool) bool { return false }

func weightRowsBulk(_, _ []float32, _ []int64, _ []float32, _ float32) (n int) { return 0 }
