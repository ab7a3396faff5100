package kernel

import (
	"fmt"
	"math"
)

// IntRange is a range of 8-bit quantized values, both ends included: int8 {-128, 127}, symmetric int8 {-127, 127},
// uint8 {0, 255}, reduced range {-64, 64} or {0, 127}.
type IntRange struct{ Lo, Hi int32 }

// Signed reports whether the values are int8 (two's complement), else uint8.
func (c IntRange) Signed() bool { return c.Lo < 0 }

func (c IntRange) check() {
	fits := c.Lo <= c.Hi && c.Lo >= -128 && (c.Hi <= 127 || c.Lo >= 0 && c.Hi <= 255)
	if !fits {
		panic(fmt.Sprintf("kernel: range %d..%d fits neither int8 nor uint8", c.Lo, c.Hi))
	}
}

// Quantize quantizes every element of x like ONNX QuantizeLinear: x/scale in float32, rounded half to even, plus zero,
// saturated to c. The magnitude of zero must be below 2^20. NaN, which callers reject before, becomes c.Lo.
func Quantize(dst []byte, x []float32, scale float32, zero int32, c IntRange) {
	c.check()
	checkLen("dst", len(dst), len(x))
	n := quantizeBulk(dst, x, scale, zero, c)
	quantizeGo(dst[n:], x[n:], scale, zero, c)
}

// QuantizeCols is Quantize on whole rows of len(scale) columns, each column with its own scale and zero point. A nil
// zero means zeros.
func QuantizeCols(dst []byte, x []float32, scale []float32, zero []int32, c IntRange) {
	c.check()
	cols := len(scale)
	checkLen("dst", len(dst), len(x))
	checkRows(len(x), cols)
	if zero != nil {
		checkLen("zero", len(zero), cols)
	}
	done := quantizeColsBulk(dst, x, scale, zero, c)
	if done == cols {
		return
	}
	for at := 0; at < len(x); at += cols {
		row := x[at+done : at+cols]
		quantizeColsGo(dst[at+done:at+cols], row, scale[done:], tail(zero, done), c)
	}
}

// tail is zero[n:] that keeps nil nil.
func tail[T any](zero []T, n int) []T {
	if zero == nil {
		return nil
	}
	return zero[n:]
}

func quantizeGo(dst []byte, x []float32, scale float32, zero int32, c IntRange) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = c.quantize(v/scale, zero)
	}
}

func quantizeColsGo(dst []byte, row, scale []float32, zero []int32, c IntRange) {
	dst, scale = dst[:len(row)], scale[:len(row)]
	if zero == nil {
		for j, v := range row {
			dst[j] = c.quantize(v/scale[j], 0)
		}
		return
	}
	zero = zero[:len(row)]
	for j, v := range row {
		dst[j] = c.quantize(v/scale[j], zero[j])
	}
}

const (
	// quotientFloor is a lower bound of quotients, below which their sum with roundShift would become negative and its
	// bits would not be ordered. It is far outside any quantized range.
	quotientFloor = -1 << 20
	// roundShift added to a float32 of magnitude below 2^22 leaves no bits for a fraction, so the
	// sum is rounded to an integer, half to even; that integer is in its low bits. Above, the
	// bits still grow with the quotient, up to Inf.
	roundShift     = 3 << 22
	roundShiftBits = 0x4b400000
)

// quantize compares so that NaN becomes the floor, like MAXPS.
func (c IntRange) quantize(quotient float32, zero int32) byte {
	if !(quotient > quotientFloor) {
		quotient = quotientFloor
	}
	// The float32 addition rounds half to even. The assembly divides, too: multiplying by the two float32 next to the
	// reciprocal, and dividing only where the results differ, is exact, but took 563 instead of 621 ns for 4096
	// elements in the L1 cache and 3 % less from memory, which does not justify a second path.
	rounded := int32(math.Float32bits(quotient+roundShift)) - roundShiftBits
	return byte(min(max(rounded+zero, c.Lo), c.Hi))
}
