package kernel

import (
	"math"
	"slices"
	"testing"
)

// float32 values as float64 must be pruned like in NMCols.
func TestNMColsDoubleEqualsNMCols(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for i, v := range x {
			if v != v {
				x[i] = 1 // callers reject NaN: as float64 it has no order
			}
		}
		for _, cols := range append(columns(len(x)), 1) {
			for _, p := range patternsNM {
				narrow := slices.Clone(x[:len(x)/cols*cols])
				wide := make([]float64, len(narrow))
				for i, v := range narrow {
					wide[i] = float64(v)
				}
				NMCols(narrow, cols, p[0], p[1])
				NMColsDouble(wide, cols, p[0], p[1])
				for i, v := range narrow {
					if math.Float64bits(wide[i]) != math.Float64bits(float64(v)) {
						t.Fatalf("%v, %d columns, element %d: got %v, want %v", p, cols, i, wide[i], v)
					}
				}
			}
		}
	})
}

func TestNMColsDoubleOrdersBeyondFloat32Precision(t *testing.T) {
	x := []float64{1 + 1e-12, -1, 1 + 3e-12, 1 + 2e-12, -1e-300, 1e-301, 0, 1e-302}
	NMColsDouble(x, 1, 2, 4)
	if want := []float64{0, 0, 1 + 3e-12, 1 + 2e-12, -1e-300, 1e-301, 0, 0}; !slices.Equal(x, want) {
		t.Errorf("got %v, want %v", x, want)
	}
}
