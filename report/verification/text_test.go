package verification

import (
	"math"
	"testing"
)

func TestOutputText(t *testing.T) {
	num := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		o    Output
		want string
	}{
		{Output{Errors: &Errors{SQNR: num(41.7), Cosine: num(0.999967), Max: num(0.16), Elements: 1}, Agreement: num(1)},
			"SQNR 41.7 dB · cosine 0.99997 · max abs error 0.16 · top-1 agreement 100 %"},
		{Output{Errors: &Errors{Exact: true, Cosine: num(1), Max: num(0), Elements: 1}}, "identical"},
		{Output{Errors: &Errors{NonFinite: 2, Elements: 3, Max: num(0.5)}},
			"SQNR not finite · NaN or infinite: 2 of 3 elements differ · max abs error 0.5"},
		{Output{Agreement: num(0.5)}, "equal elements 50 %"},
	} {
		if got := c.o.Text(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestDataText(t *testing.T) {
	for _, c := range []struct {
		d            Data
		want, caveat string
	}{
		{Data{Samples: 8, Generated: true}, "8 random samples, seed 0", "random inputs are no evidence of accuracy"},
		{Data{Samples: 1, Batch: 1}, "1 sample", ""},
		{Data{Samples: 500, Batch: 10}, "500 samples, batch size 10", ""},
	} {
		if got := c.d.Text(); got != c.want || c.d.Caveat() != c.caveat {
			t.Errorf("got %q and %q, want %q and %q", got, c.d.Caveat(), c.want, c.caveat)
		}
	}
}

func TestOnlyAFractionOf1Is100Percent(t *testing.T) {
	for v, want := range map[float64]string{1: "100 %", 0.99999: "99.99 %", 0.985: "98.5 %", 0: "0 %"} {
		if got := Percent(v); got != want {
			t.Errorf("%g: got %q, want %q", v, got, want)
		}
	}
}

func TestMetricText(t *testing.T) {
	num := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		m    Metric
		want string
		drop float64
	}{
		{Metric{Before: num(0.9), After: num(0.85), HigherIsBetter: true, Error: num(0.0123)},
			"0.9 → 0.85 (worse by 0.05, standard error 0.012)", 0.05},
		{Metric{Before: num(21.5), After: num(21.25)}, "21.5 → 21.25 (better by 0.25)", -0.25},
		{Metric{Before: num(1), After: num(1)}, "1 → 1 (no change)", 0},
		{Metric{Before: num(1)}, "1 → undefined", math.NaN()},
		{Metric{After: num(0.5), Single: true}, "0.5", math.NaN()},
	} {
		if got := c.m.Text(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if got := c.m.Drop(); math.Abs(got-c.drop) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.drop) {
			t.Errorf("%s: drop %v, want %v", c.want, got, c.drop)
		}
	}
}
