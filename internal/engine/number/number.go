package number

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Check is an error unless Read and Write support dt.
func Check(dt ir.DType) error {
	switch dt {
	case ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Bool,
		ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64:
		return nil
	}
	return fmt.Errorf("%s is not a supported numeric type", dt)
}

// Read converts the elements of a, starting at from, to dst. Integers above 2^53 are rounded.
func Read(dst []float64, a *ir.Array, from int) {
	switch a.DType {
	case ir.Float:
		read(dst, ir.View[float32](a), from)
	case ir.Double:
		read(dst, ir.View[float64](a), from)
	case ir.Float16:
		readHalves(dst, ir.View[uint16](a), from, kernel.F32FromF16)
	case ir.BFloat16:
		readHalves(dst, ir.View[uint16](a), from, kernel.F32FromBF16)
	case ir.Int8:
		read(dst, ir.View[int8](a), from)
	case ir.Int16:
		read(dst, ir.View[int16](a), from)
	case ir.Int32:
		read(dst, ir.View[int32](a), from)
	case ir.Int64:
		read(dst, ir.View[int64](a), from)
	case ir.Uint8, ir.Bool:
		read(dst, ir.View[uint8](a), from)
	case ir.Uint16:
		read(dst, ir.View[uint16](a), from)
	case ir.Uint32:
		read(dst, ir.View[uint32](a), from)
	case ir.Uint64:
		read(dst, ir.View[uint64](a), from)
	}
}

// Write converts src to the elements of a, starting at from, as Go converts them: integers are truncated.
func Write(a *ir.Array, from int, src []float64) {
	switch a.DType {
	case ir.Float:
		write(ir.View[float32](a), from, src)
	case ir.Double:
		write(ir.View[float64](a), from, src)
	case ir.Float16:
		writeHalves(ir.View[uint16](a), from, src, kernel.F16FromF32)
	case ir.BFloat16:
		writeHalves(ir.View[uint16](a), from, src, kernel.BF16FromF32)
	case ir.Int8:
		write(ir.View[int8](a), from, src)
	case ir.Int16:
		write(ir.View[int16](a), from, src)
	case ir.Int32:
		write(ir.View[int32](a), from, src)
	case ir.Int64:
		write(ir.View[int64](a), from, src)
	case ir.Uint8:
		write(ir.View[uint8](a), from, src)
	case ir.Uint16:
		write(ir.View[uint16](a), from, src)
	case ir.Uint32:
		write(ir.View[uint32](a), from, src)
	case ir.Uint64:
		write(ir.View[uint64](a), from, src)
	case ir.Bool:
		for i, x := range src {
			ir.View[bool](a)[from+i] = x != 0
		}
	}
}

type real interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func read[T real](dst []float64, src []T, from int) {
	for i, x := range src[from : from+len(dst)] {
		dst[i] = float64(x)
	}
}

func write[T real](dst []T, from int, src []float64) {
	dst = dst[from : from+len(src)]
	for i, x := range src {
		dst[i] = T(x)
	}
}

// block is the number of halves converted at once.
const block = 256

func readHalves(dst []float64, src []uint16, from int, widen func([]float32, []uint16)) {
	var buf [block]float32
	for len(dst) > 0 {
		n := min(block, len(dst))
		widen(buf[:n], src[from:from+n])
		for i, x := range buf[:n] {
			dst[i] = float64(x)
		}
		dst, from = dst[n:], from+n
	}
}

func writeHalves(dst []uint16, from int, src []float64, narrow func([]uint16, []float32)) {
	var buf [block]float32
	for len(src) > 0 {
		n := min(block, len(src))
		for i, x := range src[:n] {
			buf[i] = float32(x)
		}
		narrow(dst[from:from+n], buf[:n])
		src, from = src[n:], from+n
	}
}
