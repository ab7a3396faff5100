package conv

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

type float interface{ float32 | float64 }

// A scratch allocates parts of Call.Work.
type scratch[F float] []byte

func (s *scratch[F]) take(n int) []F {
	size := int64(n) * elementSize[F]()
	xs := kernel.Words[F]((*s)[:size])
	*s = (*s)[aligned(size):]
	return xs
}

func elementSize[F float]() int64 {
	if isFloat32[F]() {
		return 4
	}
	return 8
}

func isFloat32[F float]() bool {
	_, ok := any(F(0)).(float32)
	return ok
}

// elements are a's elements if they are F, else nil.
func elements[F float](a *ir.Array) []F {
	if isFloat32[F]() && a.DType == ir.Float || !isFloat32[F]() && a.DType == ir.Double {
		return ir.View[F](a)
	}
	return nil
}

// load converts a's elements to floats: 16-bit floats to float32, other types to float64.
func load[F float](to []F, a *ir.Array) {
	if wide, ok := any(to).([]float64); ok {
		number.Read(wide, a, 0)
	} else {
		widen(any(to).([]float32), a)
	}
}

// store is the inverse of load. Integers are truncated and saturated: cubic weights can exceed the range of the input.
func store[F float](a *ir.Array, x []F) {
	wide, ok := any(x).([]float64)
	if !ok {
		narrow(a, any(x).([]float32))
		return
	}
	if lo, hi, bounded := bounds(a.DType); bounded {
		for i, v := range wide {
			wide[i] = min(max(v, lo), hi)
		}
	}
	number.Write(a, 0, wide)
}

// bounds are the minimum and maximum float64 of an integer type.
func bounds(dt ir.DType) (lo, hi float64, bounded bool) {
	switch dt {
	case ir.Int8, ir.Int16, ir.Int32, ir.Int64:
		half := math.Ldexp(1, int(dt.Bits())-1)
		return -half, below(half), true
	case ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64:
		return 0, below(math.Ldexp(1, int(dt.Bits()))), true
	}
	return 0, 0, false
}

// below is the largest integer below a power of two.
// 2^63 - 1 and 2^64 - 1 are no float64: power-1 rounds to power, the conversion of which overflows.
func below(power float64) float64 { return min(power-1, math.Nextafter(power, 0)) }
