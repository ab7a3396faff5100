package verify

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestErrorsOfAKnownDifference(t *testing.T) {
	want, got := ir.ArrayOf([]float32{3, 4}, 2), ir.ArrayOf([]float32{3, 3}, 2)
	var s sums
	if err := s.add(want, got); err != nil {
		t.Fatal(err)
	}
	e := s.errors()
	if sqnr := 10 * math.Log10(25.0/1); math.Abs(float64(e.SQNR)-sqnr) > 1e-9 {
		t.Errorf("SQNR %v, want %v", e.SQNR, sqnr)
	}
	if cosine := 21 / (5 * math.Sqrt(18)); math.Abs(e.Cosine-cosine) > 1e-12 {
		t.Errorf("cosine %v, want %v", e.Cosine, cosine)
	}
	if e.MaxErr != 1 || e.Elements != 2 {
		t.Errorf("got %+v", e)
	}
}

func TestNaNIsCountedAndNotAveraged(t *testing.T) {
	nan := float32(math.NaN())
	want, got := ir.ArrayOf([]float32{1, 2, nan}, 3), ir.ArrayOf([]float32{1, nan, nan}, 3)
	var s sums
	if err := s.add(want, got); err != nil {
		t.Fatal(err)
	}
	e := s.errors()
	if e.NonFinite != 1 || !math.IsInf(float64(e.SQNR), -1) || e.Cosine != 0 {
		t.Errorf("got %+v", e)
	}
}

func TestErrorsAreJSON(t *testing.T) {
	var s sums
	if err := s.add(ir.ArrayOf([]float32{1}, 1), ir.ArrayOf([]float32{1}, 1)); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(s.errors())
	if want := `{"sqnr":"inf","cosine":1,"max_error":0,"non_finite":0,"elements":1}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestAgreementOfScoresAndClasses(t *testing.T) {
	var scores, classes tally
	scores.agree(ir.ArrayOf([]float32{0, 1, 5, 2}, 2, 2), ir.ArrayOf([]float32{1, 3, 1, 2}, 2, 2))
	classes.agree(ir.ArrayOf([]int64{1, 2, 3, 4}, 4), ir.ArrayOf([]int64{1, 2, 3, 5}, 4))
	if *scores.share() != 0.5 || *classes.share() != 0.75 {
		t.Errorf("got %v and %v", *scores.share(), *classes.share())
	}
}
