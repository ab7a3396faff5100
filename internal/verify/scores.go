package verify

import (
	"bytes"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
)

// A tally counts successes.
type tally struct{ yes, all int64 }

func (t *tally) count(yes bool) {
	t.all++
	if yes {
		t.yes++
	}
}

// fraction is that of successes, nil where nothing was counted.
func (t *tally) fraction() *float64 {
	if t.all == 0 {
		return nil
	}
	return rounded(float64(t.yes)/float64(t.all), 9)
}

// compare counts rows of scores with the same largest one, without rows of NaNs in the source;
// of other tensors, equal elements. Both have the same type and shape, or both hold floats.
func (t *tally) compare(want, got *ir.Array) {
	switch {
	case want.DType == ir.String:
		for i, s := range want.Text {
			t.count(s == got.Text[i])
		}
	case number.Check(want.DType) != nil || number.Check(got.DType) != nil:
		t.compareBytes(want, got)
	case want.DType.IsFloat():
		w, g := top1(want), top1(got)
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

// compareBytes compares elements of types that Go lacks, packed ones by the byte.
func (t *tally) compareBytes(want, got *ir.Array) {
	size := max(1, int(want.DType.Bits()/8))
	for at := 0; at+size <= min(len(want.Data), len(got.Data)); at += size {
		t.count(bytes.Equal(want.Data[at:at+size], got.Data[at:at+size]))
	}
}

// maxScoreRank is the maximum rank of scores: samples by classes, or samples by tokens by classes. Tensors of more axes
// are images or feature maps, whose rows are no scores.
const maxScoreRank = 3

// none is the top-1 class of a row of NaNs.
const none = -1

// top1 is the index of the largest element of each row along the last axis, the first of
// several. Rows of one element give nothing.
func top1(a *ir.Array) []int64 {
	if len(a.Shape) == 0 || len(a.Shape) > maxScoreRank {
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

// predictions are the classes of n samples, from the first suitable output:
// one integer for each sample, or rows of scores.
func predictions(out map[string]*ir.Array, order []string, n int) []int64 {
	for _, name := range order {
		a := out[name]
		switch {
		case a == nil || a.Kind != ir.Dense || number.Check(a.DType) != nil:
		case a.DType.IsFloat():
			if rows := top1(a); len(rows) == n {
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
