//go:build !amd64 || noasm

package kernel

func betweenBulk([]byte, []float32, float32, float32) (n int) { return 0 }

func scaleMaskedBulk(_, _ []float32, _ []byte, _, _ float32) (n int) { return 0 }

func quantizeStochasticBulk([]byte, []float32, float32, float32, uint32) (n int) { return 0 }
