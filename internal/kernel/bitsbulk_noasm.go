//go:build !amd64 || noasm

package kernel

// Without assembly the twins process all elements.
func (*Quantized) decodeBulk(_ []float32, _ []byte, _, _ []float32) int { return 0 }

func (*Quantized) rowBulk(_, _ []float32, _, _, _ int) int { return 0 }

func (*Quantized) int8RowBulk(_ []float32, _ *Int8Rows, _, _ int) bool { return false }
