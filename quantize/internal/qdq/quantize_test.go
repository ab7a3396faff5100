package qdq

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/internal/calibrate"
)

// Quantized activations differ by at most half a step within the range, zero is exact, and values outside are clipped.
func TestActivationErrorIsHalfAStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ActivationTypeOf(rapid.SampledFrom([]string{"uint8", "int8", "uint16", "int16"}).Draw(t, "type"))
		c.Symmetric = rapid.Bool().Draw(t, "symmetric")
		r := calibrate.Range{Min: -rapid.Float64Range(0, 1e6).Draw(t, "below"),
			Max: rapid.Float64Range(1e-6, 1e6).Draw(t, "above")}
		scale, zero, ok := c.qparams(r)
		if !ok || zero < c.min || zero > c.max {
			t.Fatalf("scale %g, zero point %d", scale, zero)
		}
		x := []float32{0, float32(r.Min), float32(r.Max), float32(rapid.Float64Range(r.Min, r.Max).Draw(t, "x")),
			float32(2 * r.Max), float32(2 * r.Min)}
		y := slices.Clone(x)
		c.fakeQuantize(y, r)
		if y[0] != 0 {
			t.Fatalf("zero became %g", y[0])
		}
		for i, v := range x[:4] {
			// The zero point is rounded too, which moves the ends by up to half a step.
			if off := math.Abs(float64(v) - float64(y[i])); off > float64(scale)*1.001 ||
				i == 3 && v > float32(r.Min)+scale && v < float32(r.Max)-scale && off > float64(scale)*0.5001 {
				t.Fatalf("%g became %g at a step of %g", v, y[i], scale)
			}
		}
	})
}

// A quantized bias differs by at most half a step, and one beyond 32 bits is an error.
func TestBiasErrorIsHalfAStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := []float32{float32(rapid.Float64Range(-100, 100).Draw(t, "b")), 0}
		w := []float32{float32(rapid.Float64Range(1e-4, 1).Draw(t, "w")), 1}
		scales := slices.Clone(w)
		quantized, err := quantizeBias("b", x, scales, 0.02)
		if err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(float64(x[0]) - float64(quantized[0])*float64(scales[0])); off > float64(scales[0])*0.5001 ||
			quantized[1] != 0 {
			t.Fatalf("%g is %d at a step of %g", x[0], quantized[0], scales[0])
		}
	})
	if _, err := quantizeBias("b", []float32{1}, []float32{1e-12}, 1e-6); err == nil {
		t.Error("a bias beyond 32 bits is stored")
	}
}
