package prune

import (
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// infinity is dt's infinity as bits: larger magnitudes are NaN.
func infinity(dt ir.DType) uint64 {
	switch dt {
	case ir.Float16:
		return 0x7c00
	case ir.BFloat16:
		return 0x7f80
	case ir.Double:
		return 0x7ff0 << 48
	}
	return 0x7f800000
}

// largest is the largest magnitude among the elements of type dt in b, as bits.
func largest(b []byte, dt ir.DType) uint64 {
	switch dt.Bits() {
	case 16:
		return uint64(kernel.MaxWord(kernel.Words[uint16](b)))
	case 64:
		return kernel.MaxWord(kernel.Words[uint64](b))
	}
	return uint64(kernel.AbsMaxBits(kernel.Words[float32](b)))
}
