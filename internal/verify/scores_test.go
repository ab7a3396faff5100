package verify

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Of equal largest scores the first counts, as in NumPy's argmax; NaN is never the largest.
func TestTop1(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		row  []float32
		want int64
	}{
		{[]float32{1, 3, 3, 2}, 1}, {[]float32{5, 5, 5, 5}, 0}, {[]float32{0, 1, 2, 2}, 2}, {[]float32{-1, -2, -1, -3}, 0},
		{[]float32{nan, 1, nan, 1}, 1}, {[]float32{nan, nan, nan, nan}, none},
	} {
		if got := top1(ir.ArrayOf(c.row, 1, 4)); !slices.Equal(got, []int64{c.want}) {
			t.Errorf("%v: class %v, want %d", c.row, got, c.want)
		}
	}
}

// Two models with the same tied scores agree, and a tie that one of them breaks in favor of a later class does not.
func TestTiesInAgreement(t *testing.T) {
	tied, first, later := ir.ArrayOf([]float32{2, 2, 1}, 1, 3), ir.ArrayOf([]float32{3, 2, 1}, 1, 3), ir.ArrayOf([]float32{2, 3, 1}, 1, 3)
	for _, c := range []struct {
		got  *ir.Array
		want int64
	}{{tied, 1}, {first, 1}, {later, 0}} {
		var agree tally
		if agree.compare(tied, c.got); agree != (tally{yes: c.want, all: 1}) {
			t.Errorf("%v: %+v", ir.View[float32](c.got), agree)
		}
	}
}
