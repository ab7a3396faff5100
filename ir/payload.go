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

// Int32s is the payload of Int32 elements.
func Int32s(is ...int32) Mem {
	b := make(Mem, 0, 4*len(is))
	for _, i := range is {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
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

// smallElems is the maximum size of a constant that Value.Ints reads.
const smallElems = 1024

// Ints reads a constant of integers, such as a shape or axes. It returns false if v is nil or no such constant, has
// more than 1024 elements, or is a lazy tensor.
func (v *Value) Ints() ([]int64, bool) {
	if v == nil || v.Const == nil || v.Const.DType != Int64 && v.Const.DType != Int32 || v.Const.Elems() > smallElems {
		return nil, false
	}
	b, ok := v.Const.Stored()
	if !ok {
		return nil, false
	}
	return ParseInts(v.Const.DType, b)
}

// Stored reads the whole payload of a small tensor that is in memory or in a file. It returns false for a lazy tensor
// and where reading fails.
func (t *Tensor) Stored() ([]byte, bool) {
	switch s := t.Source.(type) {
	case Mem:
		return s, int64(len(s)) == t.Bytes()
	case Span:
		b := make([]byte, t.Bytes())
		n, _ := s.R.ReadAt(b, s.Off)
		return b, n == len(b)
	}
	return nil, false
}
