package verify

import (
	"bytes"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/metric"
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
		w, g := metric.Top1(want), metric.Top1(got)
		for i := range w {
			// A row of NaNs of the source has no largest score to keep; one of the result alone is a difference.
			if w[i] >= 0 {
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

func all(a *ir.Array) []float64 {
	xs := make([]float64, a.Elems())
	number.Read(xs, a, 0)
	return xs
}
