package kernel

import (
	"math"
	"testing"
)

func checkDequantizeInt32(t *testing.T, x []float32, cols int) {
	t.Helper()
	x = x[:len(x)/cols*cols]
	q, scale, bias := make([]int32, len(x)), make([]float32, cols), make([]float32, cols)
	for i, v := range x {
		q[i] = int32(math.Float32bits(v))
	}
	for j := range cols {
		scale[j], bias[j] = float32(j)*0.37-1, float32(j)-3
	}
	one, perColumn, biased := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	for i, v := range q {
		f := float32(v)
		one[i] = f * 0.37
		perColumn[i] = f * scale[i%cols]
		biased[i] = float32(f*scale[i%cols]) + bias[i%cols]
	}
	got, intact := guarded[float32](len(x), 7)
	DequantizeInt32(got, q, 0.37)
	wantBits(t, got, one)
	DequantizeInt32Cols(got, q, scale, nil)
	wantBits(t, got, perColumn)
	DequantizeInt32Cols(got, q, scale, bias)
	wantBits(t, got, biased)
	intact(t)
}

func TestDequantizeInt32(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for _, cols := range columns(len(x)) {
			checkDequantizeInt32(t, x, cols)
		}
	})
}

func FuzzDequantizeInt32(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, _ uint32) { checkDequantizeInt32(t, x, int(a%70)+1) })
}

func TestDequantizeInt32RequiresWholeRows(t *testing.T) {
	dst, q, three := make([]float32, 7), make([]int32, 7), make([]float32, 3)
	wantPanic(t, "dst", func() { DequantizeInt32(dst[:6], q, 1) })
	wantPanic(t, "rows", func() { DequantizeInt32Cols(dst, q, three, nil) })
	wantPanic(t, "bias", func() { DequantizeInt32Cols(dst[:6], q[:6], three, dst[:2]) })
}
