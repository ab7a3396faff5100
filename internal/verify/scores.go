package verify

import (
	"bytes"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
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
	return rounded(float64(t.yes)/float64(t.all), 9)
}

// agree counts rows of scores with the same largest one, without those in which the source has none;
// of all that are no scores, elements that are equal. Both have one type and shape, or both hold floats
// of some width.
func (t *tally) agree(want, got *ir.Array) {
	switch {
	case want.DType == ir.String:
		for i, s := range want.Text {
			t.count(s == got.Text[i])
		}
	case number.Check(want.DType) != nil || number.Check(got.DType) != nil:
		t.agreeBytes(want, got)
	case want.DType.IsFloat():
		w, g := best(want), best(got)
		for i := range w {
			if w[i] != none {
				t.count(w[i] == g[i])
			}
		}
	default:
		w, g := all(want), all(got)
		for i := range w {
			t.count(w[i] == g[i])
		}
	}
}

// agreeBytes compares elements of types that Go does not have, packed ones by the byte.
func (t *tally) agreeBytes(want, got *ir.Array) {
	size := max(1, int(want.DType.Bits()/8))
	for at := 0; at+size <= min(len(want.Data), len(got.Data)); at += size {
		t.count(bytes.Equal(want.Data[at:at+size], got.Data[at:at+size]))
	}
}

// mostRank is that of scores: a sample and its classes, or tokens of a sample and theirs. What
// has more axes is a picture or a map of features, whose rows mean nothing.
const mostRank = 3

// none is the best of a row in which all are NaN.
const none = -1

// best is the place of the largest element in each row along the last axis, the first of
// several. Rows of one element give nothing.
func best(a *ir.Array) []int64 {
	if len(a.Shape) == 0 || len(a.Shape) > mostRank {
		return nil
	}
	cols := int(a.Shape[len(a.Shape)-1])
	if cols < 2 {
		return nil
	}
	var out []int64
	for row := range slices.Chunk(all(a), cols) {
		at := none
		for i, x := range row {
			if x == x && (at == none || x > row[at]) {
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

// predictions are the classes that a model chose for n samples, from the first of the outputs that
// can be one: whole numbers one a sample, else rows of scores.
func predictions(out map[string]*ir.Array, order []string, n int) []int64 {
	for _, name := range order {
		a := out[name]
		switch {
		case a == nil || a.Kind != ir.Dense || number.Check(a.DType) != nil:
		case a.DType.IsFloat():
			if rows := best(a); len(rows) == n {
				return rows
			}
		case a.Elems() == int64(n):
			var classes []int64
			for _, x := range all(a) {
				classes = append(classes, int64(x))
			}
			return classes
		}
	}
	return nil
}
