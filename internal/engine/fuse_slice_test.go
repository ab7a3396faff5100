package engine_test

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A Slice of a Slice along other axes is one operator.
func TestSlicesOfSlicesAreFused(t *testing.T) {
	slice := func(b *builder, x *ir.Value, start, end, axis, step int64) *ir.Value {
		return b.op("Slice", x, b.ints(start), b.ints(end), b.ints(axis), b.ints(step))
	}
	for name, c := range map[string]struct {
		build func(b *builder, x *ir.Value) *ir.Value
		want  []string
	}{
		"rows, then columns": {want: []string{"mcompress.Slice"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return slice(b, slice(b, x, 1, math.MaxInt64, 1, 2), 0, math.MaxInt64, 2, 2)
		}},
		"three axes, from the end": {want: []string{"mcompress.Slice"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return slice(b, slice(b, slice(b, x, 1, 5, 2, 2), -1, math.MinInt64, 1, -3), 1, 2, 0, 1)
		}},
		"columns twice": {want: []string{"Slice", "Slice"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return slice(b, slice(b, x, 1, math.MaxInt64, 2, 2), 0, math.MaxInt64, 2, 2)
		}},
		"axis from the end": {want: []string{"Slice", "Slice"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return slice(b, slice(b, x, 1, math.MaxInt64, 2, 2), 0, math.MaxInt64, -1, 2)
		}},
		"read twice": {want: []string{"Relu", "Slice", "Slice"}, build: func(b *builder, x *ir.Value) *ir.Value {
			y := slice(b, x, 0, 4, 1, 1)
			b.output(b.op("Relu", y))
			return slice(b, y, 0, math.MaxInt64, 2, 2)
		}},
		"without axes": {want: []string{"Slice", "Slice"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("Slice", slice(b, x, 0, 4, 1, 1), b.ints(0), b.ints(1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if steps := fusedStepsWithin(t, tolerance{}, c.build); !slices.Equal(slices.Sorted(slices.Values(steps)),
				c.want) {
				t.Errorf("steps: %v, want %v", steps, c.want)
			}
		})
	}
}
