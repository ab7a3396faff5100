package conv

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Output rows that depend on padding only have the value of the bias.
func TestQuantizedConvOfPaddingOnly(t *testing.T) {
	x, w := ir.ArrayOf([]uint8{1, 2, 3, 4, 5, 6}, 1, 1, 3, 2), ir.ArrayOf([]float32{1, 1}, 1, 1, 1, 2)
	bias, scale, zero := ir.ArrayOf([]float32{7}, 1), ir.ArrayOf([]float32{1}), ir.ArrayOf([]uint8{0})
	for _, c := range []struct {
		stride int
		want   []uint8
	}{
		{1, []uint8{7, 7, 10, 14, 18}},
		{1 << 20, []uint8{7}},
	} {
		a := attrs{"pads": []int{2, 0, 0, 0}, "strides": []int{c.stride, 1}}
		got := must(t, "QuantizedConv", 1, a, x, w, bias, scale, zero, scale, zero)
		if !slices.Equal(ir.View[uint8](got), c.want) {
			t.Errorf("stride %d: got %v, want %v", c.stride, ir.View[uint8](got), c.want)
		}
	}
}
