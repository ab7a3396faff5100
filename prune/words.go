package prune

import (
	"unsafe"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

// word is what elements are stored as.
type word interface {
	uint16 | uint32 | uint64 | float32 | float64
}

// words is b's memory as elements: payloads are little-endian, and so is every machine
// that this program is built for. b must be aligned for them.
func words[T word](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(T(0))))
}

// memory is x's memory.
func memory[T word](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// aligned reports whether b's memory can be taken as elements of the given size.
func aligned(b []byte, size int64) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(&b[0]))%uintptr(size) == 0
}

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
		return uint64(kernel.MaxWord(words[uint16](b)))
	case 64:
		return kernel.MaxWord(words[uint64](b))
	}
	return uint64(kernel.AbsMaxBits(words[float32](b)))
}
