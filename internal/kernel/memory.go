package kernel

import "unsafe"

// A Word is an element type of payloads.
type Word interface {
	int16 | int32 | uint16 | uint32 | uint64 | float32 | float64
}

// Bytes is x's memory: payloads are little-endian, like every supported machine.
func Bytes[T Word](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// Words is b's memory as elements. b must be aligned for them: see Aligned.
func Words[T Word](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(T(0))))
}

// Aligned reports whether b's memory can be used as elements of size bytes.
func Aligned(b []byte, size int64) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(&b[0]))%uintptr(size) == 0
}
