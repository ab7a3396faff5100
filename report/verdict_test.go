package report

import (
	"testing"

	"github.com/mcompress/mcompress/report/verification"
)

func TestVerdict(t *testing.T) {
	random := &verification.Result{Data: &verification.Data{Samples: 8, Generated: true, Seed: 3}}
	real := &verification.Result{Data: &verification.Data{Name: "digits.npz", Samples: 200, SHA256: "ab"}}
	held, missed := Gate{Name: "min-sqnr", Held: true}, Gate{Name: "min-cosine"}
	open, size, time := Gate{Name: "min-sqnr", Open: true}, Gate{Name: "max-size", Held: true},
		Gate{Name: "max-latency-ratio", Held: true}
	for _, c := range []struct {
		gates          []Gate
		v              *verification.Result
		text, evidence string
		passed         any
		random         bool
	}{
		{nil, real, "no gates", "200 samples of digits.npz (SHA-256 ab)", nil, false},
		{nil, random, "no gates", "8 random samples, seed 3", nil, false},
		{[]Gate{held, size}, real, "passed: 2 of 2 gates hold", "200 samples of digits.npz (SHA-256 ab)", true, false},
		{[]Gate{held}, random, "passed on random inputs: 1 of 1 gates hold", "8 random samples, seed 3", true, true},
		{[]Gate{held, missed}, random, "failed on random inputs: 1 of 2 gates do not hold", "8 random samples, seed 3", false,
			true},
		{[]Gate{size, time}, random, "passed: 2 of 2 gates hold", "8 random samples, seed 3", true, false},
		{[]Gate{open, size}, nil, "open: not all gates were evaluated", "not run", nil, false},
		{[]Gate{open, {Name: "max-size"}}, nil, "failed: 1 of 2 gates do not hold", "not run", false, false},
		{[]Gate{missed}, &verification.Result{Skipped: "too large"}, "failed: 1 of 1 gates do not hold", "not run: too large",
			false, false},
	} {
		d := NewVerdict(c.gates, c.v)
		var passed any
		if d.Passed != nil {
			passed = *d.Passed
		}
		if d.Text() != c.text || d.Evidence != c.evidence || passed != c.passed || d.RandomInputs != c.random {
			t.Errorf("got %+v %q, want %+v", d, d.Text(), c)
		}
	}
}

func TestDropsArePoints(t *testing.T) {
	drop := num(-0.0125)
	for bound, want := range map[float64]string{0.01: "1 point", 0.02: "2 points", 0: "0 points"} {
		value, relation, shown := (Gate{Name: "max-accuracy-drop", Bound: bound, Value: drop}).Shown()
		if value != "-1.25 points" || relation != "≤" || shown != want {
			t.Errorf("got %s %s %s, want -1.25 points ≤ %s", value, relation, shown, want)
		}
	}
}
