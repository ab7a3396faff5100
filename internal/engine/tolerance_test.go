package engine_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/ir"
)

// A tolerance is the accepted deviation of a number: Absolute + Relative·|want|.
type tolerance struct{ Relative, Absolute float64 }

// differ describes the first difference between got and want, or is nil.
func (tol tolerance) differ(want, got *ir.Array) error {
	if got == nil || want.Kind != got.Kind {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	if want.Kind != ir.Dense {
		return tol.items(want, got)
	}
	if want.DType != got.DType || !slices.Equal(want.Shape, got.Shape) {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	if want.DType == ir.String {
		if !slices.Equal(want.Text, got.Text) {
			return fmt.Errorf("got %q, want %q", got.Text, want.Text)
		}
		return nil
	}
	w, g := numbers(want), numbers(got)
	if w == nil {
		if !bytes.Equal(want.Data, got.Data) {
			return fmt.Errorf("got %x, want %x", got.Data, want.Data)
		}
		return nil
	}
	if want.DType == ir.BFloat16 {
		tol.Relative = max(tol.Relative, 1.0/64) // two units in the last place, as the ONNX backend runner allows
	}
	for i := range w {
		if !tol.near(w[i], g[i]) {
			return fmt.Errorf("element %d of %s: got %v, want %v", i, want, g[i], w[i])
		}
	}
	return nil
}

func (tol tolerance) items(want, got *ir.Array) error {
	if len(want.Items) != len(got.Items) {
		return fmt.Errorf("got %d items, want %d", len(got.Items), len(want.Items))
	}
	for i := range want.Items {
		if err := tol.differ(want.Items[i], got.Items[i]); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	if want.Kind == ir.Map {
		return tol.differ(want.Keys, got.Keys)
	}
	return nil
}

func (tol tolerance) near(want, got float64) bool {
	if math.IsNaN(want) || math.IsNaN(got) {
		return math.IsNaN(want) && math.IsNaN(got)
	}
	if math.IsInf(want, 0) || math.IsInf(got, 0) {
		return want == got
	}
	return math.Abs(want-got) <= tol.Absolute+tol.Relative*math.Abs(want)
}

// numbers are the elements of a, nil for types that are compared byte by byte.
func numbers(a *ir.Array) []float64 {
	switch a.DType {
	case ir.Float:
		return widened(ir.View[float32](a))
	case ir.Double:
		return ir.View[float64](a)
	case ir.Float16:
		return each(a, func(bits uint16) float64 { return float64(float16.Frombits(bits).Float32()) })
	case ir.BFloat16:
		return each(a, func(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) })
	case ir.Complex64:
		return parts(ir.View[complex64](a))
	case ir.Complex128:
		return parts(ir.View[complex128](a))
	}
	return nil
}

func widened(xs []float32) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = float64(x)
	}
	return out
}

func each(a *ir.Array, f func(uint16) float64) []float64 {
	var out []float64
	for _, x := range ir.View[uint16](a) {
		out = append(out, f(x))
	}
	return out
}

func parts[T complex64 | complex128](xs []T) []float64 {
	var out []float64
	for _, x := range xs {
		out = append(out, real(complex128(x)), imag(complex128(x)))
	}
	return out
}
