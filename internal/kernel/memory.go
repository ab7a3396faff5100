package kernel

import "unsafe"

// A Word is what a payload's elements are stored as.
type Word interface {
	int16 | int32 | uint16 | uint32 | uint64 | float32 | float64
}

// Bytes is x's memory: payloads are little-endian, and so is every machine that this
// program is built for.
func Bytes[T Word](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// Words is b's memory as elements. b must be aligned for them, as Aligned says.
func Words[T Word](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(T(0))))
}

// Aligned reports whether b's memory can be taken as elements of size bytes.
func Aligned(b []byte, size int64) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(&b[0]))%uintptr(size) == 0
}
