package kernel

import (
	"math"
	"testing"
)

// The cases are the examples of DynamicQuantizeLinear in the ONNX specification.
func TestDynamicScaleOfExamples(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     []float32
		scale float32
		zero  uint8
		want  []byte
	}{
		{"both signs", []float32{0, 2, -3, -2.5, 1.34, 0.5}, 0.0196078438, 153, []byte{153, 255, 0, 26, 221, 179}},
		{"negative", []float32{-1, -2.1, -1.3, -2.5, -3.34, -4}, 0.0156862754, 255, []byte{191, 121, 172, 96, 42, 0}},
		{
			"positive", []float32{1, 2.1, 1.3, 2.5, 3.34, 4, 1.5, 2.6, 3.9, 4, 3, 2.345}, 0.0156862754, 0,
			[]byte{64, 134, 83, 159, 213, 255, 96, 166, 249, 255, 191, 149},
		},
		{"zeros", []float32{0, 0}, 1, 0, []byte{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			scale, zero := DynamicScale(MinMax(c.x))
			got := make([]byte, len(c.x))
			Quantize(got, c.x, scale, int32(zero), IntRange{0, 255})
			if scale != c.scale || zero != c.zero {
				t.Errorf("got scale %v and zero point %d, want %v and %d", scale, zero, c.scale, c.zero)
			}
			wantSame(t, got, c.want)
		})
	}
}

// TestDynamicScaleEqualsTheDefinition rounds at the places of the specification's float32.
func TestDynamicScaleEqualsTheDefinition(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		if x = finite(x); len(x) == 0 {
			return
		}
		lo, hi := min(0, ReduceMin(x)), max(0, ReduceMax(x))
		wantScale := float32(hi-lo) / 255
		scale, zero := DynamicScale(ReduceMin(x), ReduceMax(x))
		if lo == hi || wantScale == 0 {
			return
		}
		want := math.RoundToEven(float64(min(max(-lo/wantScale, 0), 255)))
		if scale != wantScale || float64(zero) != want {
			t.Fatalf("%g to %g: got %g and %d, want %g and %g", lo, hi, scale, zero, wantScale, want)
		}
	})
}
