//go:build !amd64 || noasm

package kernel

// Without assembly the twins process all elements.

func f16SaturatedBulk([]uint16, []float32) (n int) { return 0 }

func packHalvesBulk(_ []float32, _ []uint16, _, _, _, _, _, _ int, _ bool) (rows int) { return 0 }

func packHalvesAtBulk(_ []float32, _ []uint16, _ []int32, _, _, _, _ int, _ bool) bool { return false }

func transposeHalvesBulk(_ []float32, _ int, _ []uint16, _, _, _ int) (rows int) { return 0 }
