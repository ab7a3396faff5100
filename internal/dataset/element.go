package dataset

import (
	"math"
	"unsafe"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

type number interface{ integer | float32 | float64 }

// reader returns a function that reads len(dst) elements of a tensor of type dt, starting at position at; nil if W
// cannot represent values of dt.
func reader[W int64 | float64](dt ir.DType) func(dst []W, a *ir.Array, at int64) {
	switch dt {
	case ir.Bool, ir.Uint8:
		return widen[W, uint8]
	case ir.Int8:
		return widen[W, int8]
	case ir.Int16:
		return widen[W, int16]
	case ir.Uint16:
		return widen[W, uint16]
	case ir.Int32:
		return widen[W, int32]
	case ir.Uint32:
		return widen[W, uint32]
	case ir.Int64:
		return widen[W, int64]
	case ir.Uint64:
		return widen[W, uint64]
	case ir.Float:
		return widen[W, float32]
	case ir.Double:
		return widen[W, float64]
	case ir.Float16:
		return widenHalf[W](kernel.F32FromF16)
	case ir.BFloat16:
		return widenHalf[W](kernel.F32FromBF16)
	}
	return nil
}

func widen[W int64 | float64, S number](dst []W, a *ir.Array, at int64) {
	for i, v := range ir.View[S](a)[at:][:len(dst)] {
		dst[i] = W(v)
	}
}

func widenHalf[W int64 | float64](decode func([]float32, []uint16)) func([]W, *ir.Array, int64) {
	return func(dst []W, a *ir.Array, at int64) {
		wide := make([]float32, len(dst))
		decode(wide, ir.View[uint16](a)[at:][:len(dst)])
		for i, v := range wide {
			dst[i] = W(v)
		}
	}
}

// writer returns a function that writes numbers to a tensor of type dt, starting at position at, and returns the index
// of the first one out of range, or -1; nil if dt is not numeric.
func writer[W int64 | float64](dt ir.DType) func(a *ir.Array, at int64, src []W) int {
	switch dt {
	case ir.Bool:
		return narrowBool[W]
	case ir.Uint8:
		return narrow[uint8, W]
	case ir.Int8:
		return narrow[int8, W]
	case ir.Int16:
		return narrow[int16, W]
	case ir.Uint16:
		return narrow[uint16, W]
	case ir.Int32:
		return narrow[int32, W]
	case ir.Uint32:
		return narrow[uint32, W]
	case ir.Int64:
		return narrow[int64, W]
	case ir.Uint64:
		return narrow[uint64, W]
	case ir.Float:
		return round[float32, W]
	case ir.Double:
		return round[float64, W]
	case ir.Float16:
		return roundHalf[W](kernel.F16FromF32, 0x7c00)
	case ir.BFloat16:
		return roundHalf[W](kernel.BF16FromF32, 0x7f80)
	}
	return nil
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// narrow converts a value exactly or reports failure. In Go the conversion of a float beyond the range of an integer
// type depends on the machine, so it checks the range first.
func narrow[D integer, W int64 | float64](a *ir.Array, at int64, src []W) int {
	dst := ir.View[D](a)[at:]
	lo, end := rangeOf[D]()
	_, whole := any(W(0)).(int64)
	for i, v := range src {
		if f := float64(v); !whole && !(f >= lo && f < end) {
			return i
		}
		d := D(v)
		// A negative int64 survives the way to uint64 and back; its sign does not.
		if W(d) != v || (v < 0) != (d < 0) {
			return i
		}
		dst[i] = d
	}
	return -1
}

// rangeOf is D's smallest value and its largest plus 1.
func rangeOf[D integer]() (lo, end float64) {
	bits := int(unsafe.Sizeof(D(0))) * 8
	if D(0)-1 > 0 {
		return 0, math.Ldexp(1, bits)
	}
	return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
}

func narrowBool[W int64 | float64](a *ir.Array, at int64, src []W) int {
	dst := ir.View[uint8](a)[at:]
	for i, v := range src {
		if v != 0 && v != 1 {
			return i
		}
		dst[i] = uint8(v)
	}
	return -1
}

// round rounds to nearest; a finite value that becomes infinite is out of range.
func round[D float32 | float64, W int64 | float64](a *ir.Array, at int64, src []W) int {
	dst := ir.View[D](a)[at:]
	for i, v := range src {
		dst[i] = D(v)
		if math.IsInf(float64(dst[i]), 0) && !math.IsInf(float64(v), 0) {
			return i
		}
	}
	return -1
}

// roundHalf is round for 16-bit floats; inf is the bit pattern of infinity.
func roundHalf[W int64 | float64](encode func([]uint16, []float32), infinity uint16) func(*ir.Array, int64, []W) int {
	return func(a *ir.Array, at int64, src []W) int {
		wide := make([]float32, len(src))
		for i, v := range src {
			// Rounding twice, to float32 and to 16 bits, could be off by one unit.
			wide[i] = roundOdd(float64(v))
		}
		dst := ir.View[uint16](a)[at:][:len(src)]
		encode(dst, wide)
		for i, h := range dst {
			if h&0x7fff == infinity && !math.IsInf(float64(src[i]), 0) {
				return i
			}
		}
		return -1
	}
}

// roundOdd rounds v to float32, to odd: of the two neighbours of an inexact value it returns the one whose last bit is
// 1. Rounding the result to 16 bits then equals rounding v directly (Boldo and Melquiond, Emulation of FMA and
// correctly rounded sums, 2008).
func roundOdd(v float64) float32 {
	f := float32(v)
	if float64(f) == v || math.IsNaN(v) || math.IsInf(float64(f), 0) || math.Float32bits(f)&1 == 1 {
		return f
	}
	return math.Nextafter32(f, float32(math.Copysign(math.MaxFloat32, v-float64(f))))
}
