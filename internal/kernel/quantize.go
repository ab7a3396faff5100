package kernel

import (
	"fmt"
	"math"
)

// Codes is the range of 8-bit codes that a quantization may use, both ends included: int8
// {-128, 127}, symmetric int8 {-127, 127}, uint8 {0, 255}, reduced range {-64, 64} or {0, 127}.
type Codes struct{ Lo, Hi int32 }

// Signed says whether the codes are int8 (a byte holds its two's complement), else uint8.
func (c Codes) Signed() bool { return c.Lo < 0 }

func (c Codes) check() {
	fits := c.Lo <= c.Hi && c.Lo >= -128 && (c.Hi <= 127 || c.Lo >= 0 && c.Hi <= 255)
	if !fits {
		panic(fmt.Sprintf("kernel: codes %d..%d fit neither int8 nor uint8", c.Lo, c.Hi))
	}
}

// Quantize writes the code of every element of x as ONNX QuantizeLinear defines it: x/scale in
// float32, rounded half to even, plus zero, saturated to c. The magnitude of zero must stay
// below 2^20. A NaN, which callers reject before, gets code c.Lo.
func Quantize(dst []byte, x []float32, scale float32, zero int32, c Codes) {
	c.check()
	checkLen("dst", len(dst), len(x))
	n := quantizeBulk(dst, x, scale, zero, c)
	quantizeGo(dst[n:], x[n:], scale, zero, c)
}

// QuantizeCols is Quantize on whole rows of len(scale) columns, each column with its own scale
// and zero point. A nil zero stands for zeros.
func QuantizeCols(dst []byte, x []float32, scale []float32, zero []int32, c Codes) {
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

func quantizeGo(dst []byte, x []float32, scale float32, zero int32, c Codes) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = c.code(v/scale, zero)
	}
}

func quantizeColsGo(dst []byte, row, scale []float32, zero []int32, c Codes) {
	dst, scale = dst[:len(row)], scale[:len(row)]
	if zero == nil {
		for j, v := range row {
			dst[j] = c.code(v/scale[j], 0)
		}
		return
	}
	zero = zero[:len(row)]
	for j, v := range row {
		dst[j] = c.code(v/scale[j], zero[j])
	}
}

const (
	// quotientFloor bounds quotients below, where their sum with roundShift would turn negative
	// and its bits no longer grow with it. It is far outside any code range.
	quotientFloor = -1 << 20
	// roundShift added to a float32 of magnitude below 2^22 leaves no bits for a fraction, so the
	// sum is rounded to an integer, half to even; that integer is in its low bits. Above, the
	// bits still grow with the quotient, up to Inf.
	roundShift     = 3 << 22
	roundShiftBits = 0x4b400000
)

// code compares so that a NaN takes the floor, as MAXPS does.
func (c Codes) code(quotient float32, zero int32) byte {
	if !(quotient > quotientFloor) {
		quotient = quotientFloor
	}
	rounded := int32(math.Float32bits(quotient+roundShift)) - roundShiftBits
	return byte(min(max(rounded+zero, c.Lo), c.Hi))
}
