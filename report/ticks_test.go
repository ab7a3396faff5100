package report

import (
	"math"
	"testing"
)

func TestTicksAreFew(t *testing.T) {
	for _, hi := range []float64{0.3, 1, 7, 64, 1000, 1023, 1025, 5e5, 1.3e6, 4e9, 27e9} {
		ts := byteTicks(0, hi)
		if len(ts) < 1 || len(ts) > 7 || ts[len(ts)-1].at > hi {
			t.Errorf("up to %g: %v", hi, ts)
		}
	}
}

// Steps of Heckbert's algorithm, by hand.
func TestNiceStep(t *testing.T) {
	for _, c := range []struct{ span, want float64 }{{1, 0.2}, {0.9, 0.2}, {1.1, 0.5}, {2, 0.5}, {2.1, 1}, {5, 1},
		{5.1, 2}, {10, 2}, {98, 20}, {1e6, 2e5}} {
		if got := niceStep(c.span); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("niceStep(%g) = %g, want %g", c.span, got, c.want)
		}
	}
}

func TestTicksOfRangesBelowZero(t *testing.T) {
	var got []string
	for _, tick := range numberTicks(-4.3, 0.3) {
		got = append(got, tick.label)
	}
	if want := []string{"-4", "-3", "-2", "-1", "0"}; len(got) != len(want) || got[0] != want[0] || got[4] != want[4] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTicksOfEmptyRanges(t *testing.T) {
	if ts := numberTicks(1, 1); len(ts) != 0 {
		t.Errorf("got %v", ts)
	}
}
