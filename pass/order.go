package pass

import (
	"fmt"
	"slices"
)

// Warnings reports steps of one stage whose order gives a worse result than the reverse order.
func Warnings(steps []Options) []string {
	var list []string
	for i, s := range steps {
		// Weights that were quantized for float32 products keep these products in float32 when the others become 16 bits;
		// in the reverse order scales and products are of 16 bits from the start.
		if !computesHalf(s) {
			continue
		}
		for _, before := range steps[:i] {
			if name := before.Method().Name; slices.Contains(weightOnly, name) {
				list = append(list,
					fmt.Sprintf("step %d: %s after %s leaves quantized products in float32 between Casts; move it before %s", i+1,
						s.Method().Name, name, name))
			}
		}
	}
	return list
}

// weightOnly are the methods that quantize weights of the data type that the model computes in.
var weightOnly = []string{"weight-int8", "weight-int4", "weight-int2"}

// computesHalf reports whether a step changes the data type of activations to 16 bits.
func computesHalf(s Options) bool {
	return slices.Contains(Values(s), Option{Name: "compute", Value: s.Method().Name})
}
