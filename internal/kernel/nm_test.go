package kernel

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// pruneGroup is the contract: sort by magnitude, stably, and zero all but the last n.
func pruneGroup(x []float32, at []int, n int) {
	slices.SortStableFunc(at, func(i, j int) int {
		return cmp.Compare(math.Float32bits(x[i])&magnitude, math.Float32bits(x[j])&magnitude)
	})
	for _, i := range at[:max(0, len(at)-n)] {
		x[i] = 0
	}
}

func checkNMRows(t *testing.T, x []float32, n, m int) {
	t.Helper()
	got, intact := guarded[float32](len(x), 7)
	copy(got, x)
	NMRows(got, n, m)
	want := slices.Clone(x)
	for from := 0; from < len(x); from += m {
		var at []int
		for i := from; i < min(from+m, len(x)); i++ {
			at = append(at, i)
		}
		pruneGroup(want, at, n)
	}
	wantBits(t, got, want)
	intact(t)
}

func checkNMCols(t *testing.T, x []float32, cols, n, m int) {
	t.Helper()
	x = x[:len(x)/cols*cols]
	got, intact := guarded[float32](len(x), 7)
	copy(got, x)
	NMCols(got, cols, n, m)
	want := slices.Clone(x)
	for from := 0; from < len(x); from += m * cols {
		for j := range cols {
			var at []int
			for i := from + j; i < min(from+m*cols, len(x)); i += cols {
				at = append(at, i)
			}
			pruneGroup(want, at, n)
		}
	}
	wantBits(t, got, want)
	intact(t)
}

var patternsNM = [][2]int{{2, 4}, {0, 4}, {1, 4}, {3, 4}, {4, 4}, {1, 2}, {4, 8}, {1, 1}, {3, 70}}

func TestNMRows(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for _, p := range patternsNM {
			checkNMRows(t, x, p[0], p[1])
		}
	})
}

func TestNMCols(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for _, cols := range columns(len(x)) {
			for _, p := range patternsNM {
				checkNMCols(t, x, cols, p[0], p[1])
			}
		}
	})
}

func TestNMRefusesWrongArguments(t *testing.T) {
	x := make([]float32, 8)
	wantPanic(t, "5:4", func() { NMRows(x, 5, 4) })
	wantPanic(t, "-1:4", func() { NMRows(x, -1, 4) })
	wantPanic(t, "0:0", func() { NMRows(x, 0, 0) })
	wantPanic(t, "half a row", func() { NMCols(x, 3, 2, 4) })
}

func FuzzNM(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, b uint32) {
		x = x[:min(len(x), 500)]
		m := int(b%9) + 1
		n := int(b>>8) % (m + 1)
		checkNMRows(t, x, n, m)
		checkNMRows(t, x, n%5, 4)
		checkNMCols(t, x, int(a%40)+1, n, m)
		checkNMCols(t, x, int(a%40)+1, n%5, 4)
	})
}
