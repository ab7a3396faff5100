package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

var codeRanges = []IntRange{{-128, 127}, {-127, 127}, {-64, 64}, {0, 255}, {0, 127}, {3, 3}}

// quantizeLinear is ONNX's definition, word by word: y = saturate(round(x/scale) + zero).
func quantizeLinear(x, scale float32, zero int32, c IntRange) byte {
	y := math.RoundToEven(float64(x/scale)) + float64(zero)
	if y != y {
		return byte(c.Lo)
	}
	return byte(int32(min(max(y, float64(c.Lo)), float64(c.Hi))))
}

func checkQuantize(t *testing.T, x []float32, scale float32, zero int32, c IntRange) {
	t.Helper()
	got, intact := guarded[byte](len(x), 0xa5)
	twin, want := make([]byte, len(x)), make([]byte, len(x))
	Quantize(got, x, scale, zero, c)
	quantizeGo(twin, x, scale, zero, c)
	for i, v := range x {
		want[i] = quantizeLinear(v, scale, zero, c)
	}
	wantSame(t, twin, want)
	wantSame(t, got, want)
	intact(t)
}

func checkQuantizeCols(t *testing.T, x []float32, scale []float32, zero []int32, c IntRange) {
	t.Helper()
	cols := len(scale)
	x = x[:len(x)/cols*cols]
	got, intact := guarded[byte](len(x), 0xa5)
	want := make([]byte, len(x))
	QuantizeCols(got, x, scale, zero, c)
	for i, v := range x {
		z := int32(0)
		if zero != nil {
			z = zero[i%cols]
		}
		want[i] = quantizeLinear(v, scale[i%cols], z, c)
	}
	wantSame(t, got, want)
	intact(t)
}

func TestQuantize(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for _, c := range codeRanges {
			for _, scale := range []float32{1, 0.0123, 0x1p-126, 0, -3} {
				checkQuantize(t, x, scale, 0, c)
				checkQuantize(t, x, scale, c.Hi/2+1, c)
			}
		}
	})
}

// randomColumns has scales of all kinds and zero points within the range.
func randomColumns(cols int) (scale []float32, zero []int32) {
	r := rand.New(rand.NewPCG(uint64(cols), 0))
	for range cols {
		scale = append(scale, float32(r.ExpFloat64()*0.01))
		zero = append(zero, int32(r.IntN(384)-128))
	}
	scale[r.IntN(cols)] = 1
	return scale, zero
}

func TestQuantizeCols(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for _, cols := range columns(len(x)) {
			scale, zero := randomColumns(cols)
			for _, c := range codeRanges {
				checkQuantizeCols(t, x, scale, nil, c)
				checkQuantizeCols(t, x, scale, zero, c)
			}
		}
	})
}

func TestQuantizeRoundsHalfToEven(t *testing.T) {
	x := []float32{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 126.5, 127.5, -127.5, -128.5}
	want := []int8{-2, -2, 0, 0, 2, 2, 126, 127, -128, -128}
	got := make([]byte, len(x))
	Quantize(got, x, 1, 0, IntRange{-128, 127})
	for i := range x {
		if int8(got[i]) != want[i] {
			t.Errorf("%g: got %d, want %d", x[i], int8(got[i]), want[i])
		}
	}
}

func TestQuantizeRefusesWrongArguments(t *testing.T) {
	x, d := make([]float32, 4), make([]byte, 4)
	wantPanic(t, "short dst", func() { Quantize(d[:3], x, 1, 0, IntRange{0, 255}) })
	wantPanic(t, "a range of 9 bits", func() { Quantize(d, x, 1, 0, IntRange{-1, 255}) })
	wantPanic(t, "an empty range", func() { Quantize(d, x, 1, 0, IntRange{1, 0}) })
	wantPanic(t, "short zero", func() { QuantizeCols(d, x, x[:2], make([]int32, 1), IntRange{0, 255}) })
	wantPanic(t, "half a row", func() { QuantizeCols(d, x, x[:3], nil, IntRange{0, 255}) })
}

func FuzzQuantize(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, b uint32) {
		c := codeRanges[a%uint32(len(codeRanges))]
		zero := int32(a>>8%512) - 128
		checkQuantize(t, x, math.Float32frombits(b), zero, c)
		if len(x) == 0 {
			return
		}
		cols := int(a>>20)%len(x) + 1
		zeros := make([]int32, cols)
		for j := range zeros {
			zeros[j] = zero + int32(j%7)
		}
		checkQuantizeCols(t, x, x[len(x)-cols:], nil, c)
		checkQuantizeCols(t, x, x[len(x)-cols:], zeros, c)
	})
}
