package elementwise

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A stage converts the first n elements of src into n of dst. They may share memory if the elements have one width.
type stage func(dst, src []byte, n int)

// conversion returns the stages from one numeric type to another, through elements of at most 8 bytes: decoding a type
// that Go does not have, converting, encoding one.
func conversion(from, to ir.DType, r narrow.Rounding) []stage {
	if from == to {
		return []stage{copying(from)}
	}
	from, decode := decoding(from)
	to, encode := encoding(to, r)
	var stages []stage
	for _, s := range []stage{decode, between(from, to, encode != nil), encode} {
		if s != nil {
			stages = append(stages, s)
		}
	}
	return stages
}

func copying(dt ir.DType) stage {
	bits := int(dt.Bits())
	return func(dst, src []byte, n int) { copy(dst, src[:(n*bits+7)/8]) }
}

// decoding is the stage that decodes dt to a type that Go has, nil if Go has dt.
func decoding(dt ir.DType) (ir.DType, stage) {
	switch {
	case dt == ir.Float16:
		return ir.Float, func(dst, src []byte, n int) {
			kernel.F32FromF16(block.Words[float32](dst, n), block.Words[uint16](src, n))
		}
	case dt == ir.BFloat16:
		return ir.Float, func(dst, src []byte, n int) {
			kernel.F32FromBF16(block.Words[float32](dst, n), block.Words[uint16](src, n))
		}
	case narrow.IsFloat(dt):
		return ir.Float, func(dst, src []byte, n int) { narrow.DecodeFloats(block.Words[float32](dst, n), src, dt) }
	case narrow.IsInt(dt):
		return container(dt), func(dst, src []byte, n int) { narrow.DecodeInts(dst[:n], src, dt) }
	}
	return dt, nil
}

// encoding is the inverse of decoding.
func encoding(dt ir.DType, r narrow.Rounding) (ir.DType, stage) {
	switch {
	case dt == ir.Float16:
		return ir.Float, func(dst, src []byte, n int) {
			kernel.F16FromF32(block.Words[uint16](dst, n), block.Words[float32](src, n))
		}
	case dt == ir.BFloat16:
		return ir.Float, func(dst, src []byte, n int) {
			kernel.BF16FromF32(block.Words[uint16](dst, n), block.Words[float32](src, n))
		}
	case narrow.IsFloat(dt):
		return ir.Float, func(dst, src []byte, n int) { narrow.EncodeFloats(dst, block.Words[float32](src, n), dt, r) }
	case narrow.IsInt(dt):
		return container(dt), func(dst, src []byte, n int) { narrow.EncodeInts(dst, src[:n], dt) }
	}
	return dt, nil
}

// container is the 8-bit type that represents the values of a packed one.
func container(dt ir.DType) ir.DType {
	if dt == ir.Int4 || dt == ir.Int2 {
		return ir.Int8
	}
	return ir.Uint8
}

// between converts between types that Go has, nil if they are the same. before means that the result will be rounded
// again.
func between(from, to ir.DType, before bool) stage {
	// Integers of one width wrap around, so their bits are the same.
	if from != to && (block.Ints | block.Bool).Has(from) && block.Ints.Has(to) && from.Bits() == to.Bits() {
		return copying(from)
	}
	switch from {
	case to:
		return nil
	case ir.Float:
		return outOfFloat[float32](to)
	case ir.Double:
		// Rounded to odd, so that the second rounding, to a narrower type, is that of the double.
		if before && to == ir.Float {
			return loop(toOdd)
		}
		return outOfFloat[float64](to)
	case ir.Int8:
		return outOfInt[int8](to)
	case ir.Int16:
		return outOfInt[int16](to)
	case ir.Int32:
		return outOfInt[int32](to)
	case ir.Int64:
		return outOfInt[int64](to)
	case ir.Uint16:
		return outOfInt[uint16](to)
	case ir.Uint32:
		return outOfInt[uint32](to)
	case ir.Uint64:
		return outOfInt[uint64](to)
	}
	return outOfInt[uint8](to) // Bool too
}

// outOfInt converts from S, which does not have the width of to if that is an integer. Integers of one width have the
// same low bits.
func outOfInt[S goNumber](to ir.DType) stage {
	switch to {
	case ir.Float:
		return plain[S, float32]()
	case ir.Double:
		return plain[S, float64]()
	case ir.Int8, ir.Uint8:
		return plain[S, uint8]()
	case ir.Int16, ir.Uint16:
		return plain[S, uint16]()
	case ir.Int32, ir.Uint32:
		return plain[S, uint32]()
	case ir.Int64, ir.Uint64:
		return plain[S, uint64]()
	}
	return loop(func(v S) bool { return v != 0 })
}

// outOfFloat truncates to integers. Go leaves out-of-range conversions to the CPU: they are defined here like on
// x86-64, and so in NumPy and ONNX Runtime: the minimum of int32, or of int64 for types that exceed 32 bits.
func outOfFloat[S real](to ir.DType) stage {
	switch to {
	case ir.Float:
		return plain[S, float32]()
	case ir.Double:
		return plain[S, float64]()
	case ir.Int8, ir.Uint8:
		return truncated[S, uint8]()
	case ir.Int16, ir.Uint16:
		return truncated[S, uint16]()
	case ir.Int32:
		return truncated[S, uint32]()
	case ir.Uint32:
		return longTruncated[S, uint32]()
	case ir.Int64:
		return longTruncated[S, uint64]()
	case ir.Uint64:
		return loop(func(v S) uint64 { return truncateUnsigned(float64(v)) })
	}
	return loop(func(v S) bool { return v != 0 })
}

type goNumber interface {
	real | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func loop[S, D ir.Element](f func(S) D) stage {
	return func(dst, src []byte, n int) {
		x, y := block.Words[S](src, n), block.Words[D](dst, n)
		for i, v := range x {
			y[i] = f(v)
		}
	}
}

func plain[S, D goNumber]() stage {
	return func(dst, src []byte, n int) {
		x, y := block.Words[S](src, n), block.Words[D](dst, n)
		for i, v := range x {
			y[i] = D(v)
		}
	}
}

func truncated[S real, D uint8 | uint16 | uint32]() stage {
	return func(dst, src []byte, n int) {
		x, y := block.Words[S](src, n), block.Words[D](dst, n)
		for i, v := range x {
			y[i] = D(truncate32(float64(v))) // called directly, it is inlined
		}
	}
}

func longTruncated[S real, D uint32 | uint64]() stage {
	return func(dst, src []byte, n int) {
		x, y := block.Words[S](src, n), block.Words[D](dst, n)
		for i, v := range x {
			y[i] = D(truncate64(float64(v)))
		}
	}
}

func truncate32(v float64) int32 {
	// Open bounds, as fractions beyond the range truncate into it. NaN fulfils neither.
	if v > math.MinInt32-1 && v < math.MaxInt32+1 {
		return int32(v)
	}
	return math.MinInt32
}

func truncate64(v float64) int64 {
	if v >= -1<<63 && v < 1<<63 {
		return int64(v)
	}
	return math.MinInt64
}

func truncateUnsigned(v float64) uint64 {
	// Go converts to int64 only within its range; the subtraction is exact.
	if v >= 1<<63 && v < 1<<64 {
		return uint64(v-1<<63) + 1<<63
	}
	return uint64(truncate64(v))
}

// toOdd rounds to a float32 such that rounding it once more, to fewer bits, equals rounding v: inexact results get an
// odd last bit (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
func toOdd(v float64) float32 {
	f := float32(v)
	exact := float64(f)
	if exact == v || v != v || math.IsInf(v, 0) {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(exact) > math.Abs(v) {
		b-- // towards zero
	}
	return math.Float32frombits(b | 1)
}
