package verify

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Two models with the same tied scores agree, and a tie that one of them breaks in favor of a later class does not.
func TestTiesInAgreement(t *testing.T) {
	tied, first, later := ir.ArrayOf([]float32{2, 2, 1}, 1, 3), ir.ArrayOf([]float32{3, 2, 1}, 1, 3),
		ir.ArrayOf([]float32{2, 3, 1}, 1, 3)
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

// Scores that are probabilities stay as they are; of others the softmax is taken, here of differences whose
// exponentials are known.
func TestProbabilitiesOfScores(t *testing.T) {
	for _, c := range []struct{ row, want []float64 }{
		{[]float64{0.5, 0.25, 0.25}, []float64{0.5, 0.25, 0.25}},
		{[]float64{0, 1}, []float64{0, 1}},
		{[]float64{1, 1}, []float64{0.5, 0.5}},
		{[]float64{2 + math.Log(3), 2}, []float64{0.75, 0.25}},
		{[]float64{1 + math.Log(4), 1, -math.Inf(1)}, []float64{0.8, 0.2, 0}},
		{[]float64{1.5, -0.5}, []float64{1 / (1 + math.Exp(-2)), 1 / (1 + math.Exp(2))}},
	} {
		got := Probabilities(c.row)
		for i, want := range c.want {
			if math.Abs(got[i]-want) > 1e-12 {
				t.Errorf("of %v: %v, want %v", c.row, got, c.want)
				break
			}
		}
	}
}
