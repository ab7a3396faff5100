package verify

import (
	"slices"

	"github.com/mcompress/mcompress/engine/number"
	"github.com/mcompress/mcompress/ir"
)

// A tally counts how often something was so.
type tally struct{ yes, all int64 }

func (t *tally) count(yes bool) {
	t.all++
	if yes {
		t.yes++
	}
}

// share is what part it was, nil where nothing was counted.
func (t *tally) share() *float64 {
	if t.all == 0 {
		return nil
	}
	v := float64(t.yes) / float64(t.all)
	return &v
}

// agree counts rows of scores with the same largest one; for whole numbers and text,
// elements that are equal.
func (t *tally) agree(want, got *ir.Array) {
	if want.DType == ir.String {
		for i, s := range want.Text {
			t.count(i < len(got.Text) && s == got.Text[i])
		}
		return
	}
	if !want.DType.IsFloat() {
		w, g := all(want), all(got)
		for i := range w {
			t.count(w[i] == g[i])
		}
		return
	}
	w, g := best(want), best(got)
	for i := range w {
		t.count(i < len(g) && w[i] == g[i])
	}
}

// best is the place of the largest element in each row along the last axis; the first of
// several. A row of one has none, so such tensors give nothing.
func best(a *ir.Array) []int64 {
	if len(a.Shape) == 0 {
		return nil
	}
	cols := a.Shape[len(a.Shape)-1]
	if cols < 2 {
		return nil
	}
	xs := all(a)
	var out []int64
	for row := range slices.Chunk(xs, int(cols)) {
		at := 0
		for i, x := range row {
			if x > row[at] || row[at] != row[at] {
				at = i
			}
		}
		out = append(out, int64(at))
	}
	return out
}

func all(a *ir.Array) []float64 {
	xs := make([]float64, a.Elems())
	number.Read(xs, a, 0)
	return xs
}

// isScores reports whether a holds one row of scores for each of n samples.
func isScores(a *ir.Array, n int) bool {
	return a.Kind == ir.Dense && a.DType.IsFloat() && len(a.Shape) >= 1 && a.Shape[len(a.Shape)-1] > 1 && a.Elems() == int64(n)*a.Shape[len(a.Shape)-1]
}

// predictions are the classes that a model chose for n samples, from the named output or the first that
// can be one: whole numbers one a sample, else rows of scores.
func predictions(out map[string]*ir.Array, order []string, n int) []int64 {
	for _, name := range order {
		a := out[name]
		switch {
		case a == nil:
		case isScores(a, n):
			return best(a)
		case a.Kind == ir.Dense && (a.DType == ir.Int64 || a.DType == ir.Int32) && a.Elems() == int64(n):
			var classes []int64
			for _, x := range all(a) {
				classes = append(classes, int64(x))
			}
			return classes
		}
	}
	return nil
}
