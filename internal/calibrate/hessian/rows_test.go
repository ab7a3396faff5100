package hessian

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
)

// Inputs of GPTQ are rows of floats of 16 or 32 bits, of the width of the matrix.
func TestRowsOfInputs(t *testing.T) {
	x := []float32{1, -2, 0.5, 4, 0, 3}
	half := make([]uint16, len(x))
	for i, v := range x {
		half[i] = quanttest.Narrow(ir.Float16, v)
	}
	bfloat := *ir.ArrayOf(half, 2, 3)
	bfloat.DType = ir.BFloat16
	float16 := *ir.ArrayOf(half, 2, 3)
	float16.DType = ir.Float16
	for name, c := range map[string]struct {
		a  *ir.Array
		k  int
		ok bool
	}{
		"float":       {ir.ArrayOf(x, 2, 3), 3, true},
		"float16":     {&float16, 3, true},
		"bfloat16":    {&bfloat, 3, false},
		"double":      {ir.ArrayOf(make([]float64, 6), 2, 3), 3, false},
		"other width": {ir.ArrayOf(x, 2, 3), 2, false},
		"scalar":      {ir.ArrayOf(x[:1]), 1, false},
	} {
		got, ok := Rows(c.a, c.k)
		if ok != c.ok || ok && !slices.Equal(got, x) {
			t.Errorf("%s: %v, %t", name, got, ok)
		}
	}
}
