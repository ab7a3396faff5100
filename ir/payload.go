package ir

import (
	"encoding/binary"
	"math"
)

// Floats is the payload of Float elements.
func Floats(fs ...float32) Mem {
	b := make(Mem, 0, 4*len(fs))
	for _, f := range fs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

// Ints is the payload of Int64 elements.
func Ints(is ...int64) Mem {
	b := make(Mem, 0, 8*len(is))
	for _, i := range is {
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
	}
	return b
}

// ParseInts are the elements of an Int64 or Int32 payload, false for other types.
func ParseInts(dt DType, b []byte) ([]int64, bool) {
	is := make([]int64, 0, len(b)/4)
	switch dt {
	case Int64:
		for ; len(b) >= 8; b = b[8:] {
			is = append(is, int64(binary.LittleEndian.Uint64(b)))
		}
	case Int32:
		for ; len(b) >= 4; b = b[4:] {
			is = append(is, int64(int32(binary.LittleEndian.Uint32(b))))
		}
	default:
		return nil, false
	}
	return is, true
}
