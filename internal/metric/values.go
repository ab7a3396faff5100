package metric

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
)

// values are the numbers of a.
func values(a *ir.Array) []float64 {
	xs := make([]float64, a.Elems())
	number.Read(xs, a, 0)
	return xs
}

// readable reports whether a is a tensor of numbers.
func readable(a *ir.Array) bool {
	return a != nil && a.Kind == ir.Dense && a.DType != ir.String && number.Check(a.DType) == nil
}

// floating reports whether a is a tensor of floats.
func floating(a *ir.Array) bool { return readable(a) && a.DType.IsFloat() }

// sample is the shape of one of n samples of a, whose first axis is samples unless there is one sample without that
// axis. ok is false if a does not hold n samples.
func sample(a *ir.Array, n int) (shape []int64, ok bool) {
	switch {
	case len(a.Shape) > 0 && a.Shape[0] == int64(n):
		return a.Shape[1:], true
	case n == 1:
		return a.Shape, true
	}
	return nil, false
}

// rows are the numbers of each of n samples of a; nil if a does not hold n samples.
func rows(a *ir.Array, n int) [][]float64 {
	if _, ok := sample(a, n); !ok || a.Elems() == 0 {
		return nil
	}
	return slices.Collect(slices.Chunk(values(a), int(a.Elems())/n))
}

// classLabels are the labels of each sample as classes; negative ones do not count.
func classLabels(b *Batch) ([][]int64, error) {
	if !readable(b.Labels) || b.Labels.DType.IsFloat() {
		return nil, inapplicable("labels are %s; classes are integers", b.Labels)
	}
	all := rows(b.Labels, b.N)
	if all == nil {
		return nil, inapplicable("labels are %s, but the run has %d samples", b.Labels, b.N)
	}
	out := make([][]int64, len(all))
	for i, row := range all {
		for _, x := range row {
			out[i] = append(out[i], int64(x))
		}
	}
	return out, nil
}
