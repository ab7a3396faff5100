package verify

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

func errorsOf(t *testing.T, want, got []float32) verification.Errors {
	t.Helper()
	var s sums
	s.add(ir.ArrayOf(want, int64(len(want))), ir.ArrayOf(got, int64(len(got))))
	return s.errors()
}

func TestErrorsOfAKnownDifference(t *testing.T) {
	e := errorsOf(t, []float32{3, 4}, []float32{3, 3})
	if sqnr := 10 * math.Log10(25.0/1); math.Abs(e.DB()-sqnr) > 0.0005 {
		t.Errorf("SQNR %v, want %v", e.DB(), sqnr)
	}
	if cosine := 21 / (5 * math.Sqrt(18)); math.Abs(*e.Cosine-cosine) > 1e-9 {
		t.Errorf("cosine %v, want %v", *e.Cosine, cosine)
	}
	if *e.Max != 1 || e.Elements != 2 || e.Exact {
		t.Errorf("got %+v", e)
	}
}

func TestNaNIsCountedAndNotAveraged(t *testing.T) {
	nan := float32(math.NaN())
	e := errorsOf(t, []float32{1, 2, nan, 4}, []float32{1, nan, nan, 4})
	if e.NonFinite != 1 || e.SourceNonFinite != 1 || e.Lost != 1 || !math.IsInf(e.DB(), -1) || e.SQNR != nil ||
		e.Cosine != nil {
		t.Errorf("got %+v", e)
	}
}

// What is not finite in the source is not lost by the result.
func TestOnlyFiniteNumbersAreLost(t *testing.T) {
	nan := float32(math.NaN())
	if e := errorsOf(t, []float32{nan, 1}, []float32{0, 1}); e.NonFinite != 1 || e.Lost != 0 {
		t.Errorf("got %+v", e)
	}
}

func TestLimitsOfSQNR(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name      string
		want, got []float32
		db        float64
		exact     bool
	}{
		{"equal", []float32{1, 2}, []float32{1, 2}, math.Inf(1), true},
		{"equal zeros", []float32{0, 0}, []float32{0, 0}, math.Inf(1), true},
		{"equal next to infinities", []float32{1, -inf}, []float32{1, -inf}, math.Inf(1), true},
		{"no signal", []float32{0, 0}, []float32{1, 0}, math.Inf(-1), false},
		{"other infinity", []float32{1, inf}, []float32{1, -inf}, math.Inf(-1), false},
		{"a number for NaN", []float32{1, nan}, []float32{1, 2}, math.Inf(-1), false},
		{"nothing finite", []float32{nan, inf}, []float32{nan, inf}, math.NaN(), true},
		{"nothing at all", nil, nil, math.NaN(), true},
	} {
		e := errorsOf(t, c.want, c.got)
		if e.Exact != c.exact || e.DB() != c.db && !(math.IsNaN(c.db) && math.IsNaN(e.DB())) {
			t.Errorf("%s: %v, %+v; want %v", c.name, e.DB(), e, c.db)
		}
	}
}

func TestErrorsAreJSONAndBack(t *testing.T) {
	for _, want := range []string{
		`{"exact":true,"max_abs":0,"elements":2}`,
		`{"exact":false,"sqnr_db":13.979,"cosine":0.989949494,"max_abs":1,"elements":2}`,
	} {
		e := errorsOf(t, []float32{3, 4}, []float32{3, 3})
		if want[9] == 't' {
			e = errorsOf(t, []float32{0, 0}, []float32{0, 0})
		}
		b, err := json.Marshal(e)
		if err != nil || string(b) != want {
			t.Errorf("got %s, %v; want %s", b, err, want)
		}
		var back verification.Errors
		if err := json.Unmarshal(b, &back); err != nil || back.DB() != e.DB() {
			t.Errorf("%s is read as %+v, %v", b, back, err)
		}
	}
}

// The order of sums is that of the elements, whatever the sizes of the parts that are read.
func TestLongTensorsAreReadWhole(t *testing.T) {
	n := 2*readBlock + 17
	want, got := make([]float32, n), make([]float32, n)
	for i := range want {
		want[i] = float32(i%7) - 3
		got[i] = want[i]
	}
	got[n-1] += 2
	e := errorsOf(t, want, got)
	if e.Elements != int64(n) || *e.Max != 2 || e.Exact {
		t.Errorf("got %+v", e)
	}
}

func TestAgreementOfScoresAndClasses(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name      string
		want, got *ir.Array
		fraction  float64 // -1 for none
	}{
		{"scores", ir.ArrayOf([]float32{0, 1, 5, 2}, 2, 2), ir.ArrayOf([]float32{1, 3, 1, 2}, 2, 2), 0.5},
		{"classes", ir.ArrayOf([]int64{1, 2, 3, 4}, 4), ir.ArrayOf([]int64{1, 2, 3, 5}, 4), 0.75},
		{"text", ir.TextOf([]string{"a", "b"}, 2), ir.TextOf([]string{"a", "c"}, 2), 0.5},
		{"rows with NaN", ir.ArrayOf([]float32{nan, 1, nan, 1}, 2, 2), ir.ArrayOf([]float32{nan, 1, 2, 1}, 2, 2), 0.5},
		{"rows of NaN", ir.ArrayOf([]float32{nan, nan}, 1, 2), ir.ArrayOf([]float32{nan, nan}, 1, 2), -1},
		{"rows that became NaN", ir.ArrayOf([]float32{1, 2}, 1, 2), ir.ArrayOf([]float32{nan, nan}, 1, 2), 0},
		{"a picture", ir.NewArray(ir.Float, 1, 3, 2, 2), ir.NewArray(ir.Float, 1, 3, 2, 2), -1},
		{"one score", ir.NewArray(ir.Float, 4, 1), ir.NewArray(ir.Float, 4, 1), -1},
		{"8-bit floats", &ir.Array{DType: ir.Float8E4M3FN, Shape: []int64{2}, Data: []byte{1, 2}},
			&ir.Array{DType: ir.Float8E4M3FN, Shape: []int64{2}, Data: []byte{1, 3}}, 0.5},
	} {
		var s tally
		s.compare(c.want, c.got)
		if got := s.fraction(); c.fraction < 0 && got != nil || c.fraction >= 0 && (got == nil || *got != c.fraction) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.fraction)
		}
	}
}
