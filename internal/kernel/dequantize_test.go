package kernel

import (
	"math"
	"testing"
)

// everyCode is n bytes that cycle through all values.
func everyCode(n int) []byte {
	q := make([]byte, n+1)[1:]
	for i := range q {
		q[i] = byte(i * 7)
	}
	return q
}

func checkDequantize(t *testing.T, q []byte, signed bool, scale float32, zero int32) {
	t.Helper()
	got, intact := guarded[float32](len(q), 7)
	twin, want := make([]float32, len(q)), make([]float32, len(q))
	Dequantize(got, q, signed, scale, zero)
	dequantizeGo(twin, q, signed, scale, zero)
	for i, b := range q {
		want[i] = dequantizeLinear(b, signed, scale, zero)
	}
	wantValues(t, twin, want)
	wantValues(t, got, want)
	intact(t)
}

// dequantizeLinear is ONNX's definition: (x - zero) * scale.
func dequantizeLinear(b byte, signed bool, scale float32, zero int32) float32 {
	v := int32(b)
	if signed && v > 127 {
		v -= 256
	}
	return float32(v-zero) * scale
}

// wantValues accepts any NaN for another: the payload of a product depends on the CPU.
func wantValues(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if got[i] != got[i] && want[i] != want[i] {
			continue
		}
		wantBits(t, got[i:i+1], want[i:i+1])
	}
}

func checkDequantizeCols(t *testing.T, q []byte, signed bool, scale []float32, zero []int32) {
	t.Helper()
	cols := len(scale)
	q = q[:len(q)/cols*cols]
	got, intact := guarded[float32](len(q), 7)
	want := make([]float32, len(q))
	DequantizeCols(got, q, signed, scale, zero)
	for i, b := range q {
		z := int32(0)
		if zero != nil {
			z = zero[i%cols]
		}
		want[i] = dequantizeLinear(b, signed, scale[i%cols], z)
	}
	wantValues(t, got, want)
	intact(t)
}

func TestDequantize(t *testing.T) {
	for _, n := range sampleLengths() {
		for _, signed := range []bool{true, false} {
			checkDequantize(t, everyCode(n), signed, 0.0123, 0)
			checkDequantize(t, everyCode(n), signed, 0x1p-140, 77)
		}
	}
}

func TestDequantizeCols(t *testing.T) {
	for _, n := range sampleLengths() {
		for _, cols := range columns(n) {
			scale, zero := randomColumns(cols)
			for _, signed := range []bool{true, false} {
				checkDequantizeCols(t, everyCode(n), signed, scale, nil)
				checkDequantizeCols(t, everyCode(n), signed, scale, zero)
			}
		}
	}
}

func TestDequantizeUndoesQuantize(t *testing.T) {
	for _, c := range codeRanges {
		q := make([]byte, 0, 256)
		for v := c.Lo; v <= c.Hi; v++ {
			q = append(q, byte(v))
		}
		x, back := make([]float32, len(q)), make([]byte, len(q))
		Dequantize(x, q, c.Signed(), 0.01, c.Lo+1)
		Quantize(back, x, 0.01, c.Lo+1, c)
		wantSame(t, back, q)
	}
}

func FuzzDequantize(f *testing.F) {
	f.Add(everyCode(100), true, uint32(0x3f800000), int32(3), byte(9))
	f.Fuzz(func(t *testing.T, q []byte, signed bool, scale uint32, zero int32, width byte) {
		s, cols := math.Float32frombits(scale), int(width)+1
		checkDequantize(t, q, signed, s, zero)
		scales, zeros := make([]float32, cols), make([]int32, cols)
		for j := range cols {
			scales[j], zeros[j] = s/float32(j+1), zero+int32(j)
		}
		checkDequantizeCols(t, q, signed, scales, nil)
		checkDequantizeCols(t, q, signed, scales, zeros)
	})
}
