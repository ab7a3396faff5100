package report_test

import (
	"testing"

	"github.com/mcompress/mcompress/report"
)

// TestBoundsAreReadInTheirUnits reads the bounds that each unit accepts and refuses.
func TestBoundsAreReadInTheirUnits(t *testing.T) {
	for _, c := range []struct {
		gate    string
		good    map[string]float64
		refused []string
	}{
		{"min-sqnr", map[string]float64{"30": 30, "-3.5": -3.5}, []string{"", "30dB", "inf", "nan"}},
		{"min-ratio", map[string]float64{"1.5": 1.5}, []string{"0", "-1", "NaN", "Inf", "two"}},
		{"max-accuracy-drop", map[string]float64{"0.01": 0.01, "0": 0, "1": 1}, []string{"1.1", "-0.1", "NaN", "1%", ""}},
		{"max-size", map[string]float64{"1KiB": 1024, "10MB": 1e7}, []string{"0", "-1", "big"}},
	} {
		for text, want := range c.good {
			if got, err := report.ParseBound(c.gate, text); err != nil || got != want {
				t.Errorf("%s %s is %v, %v, want %v", c.gate, text, got, err, want)
			}
		}
		for _, text := range c.refused {
			if got, err := report.ParseBound(c.gate, text); err == nil {
				t.Errorf("%s: %q is taken for %v", c.gate, text, got)
			}
		}
	}
	if _, err := report.ParseBound("min-luck", "1"); err == nil {
		t.Error("there is a gate min-luck")
	}
}

// TestGatesHaveTexts requires a line of help of each gate, which names its bound.
func TestGatesHaveTexts(t *testing.T) {
	for _, name := range report.GateNames() {
		if doc := report.GateDoc(name); len(doc) == 0 {
			t.Errorf("gate %s has no text", name)
		}
	}
}
