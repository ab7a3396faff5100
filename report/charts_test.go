package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report/verification"
)

// The corners of the axes' ranges are those of the frame, and the middle is its middle.
func TestFrameIsTheRangeOfTheAxes(t *testing.T) {
	f := frame{left: 40, top: 10, right: 240, bottom: 110, x: axis{min: -3, max: 5}, y: axis{min: 20, max: 60}}
	for _, c := range []struct{ value, want point }{
		{point{-3, 20}, point{40, 110}},
		{point{5, 60}, point{240, 10}},
		{point{1, 40}, point{140, 60}},
	} {
		if got := f.at(c.value); got != c.want {
			t.Errorf("%v is at %v, want %v", c.value, got, c.want)
		}
	}
}

func TestTicksAreRoundInTheirUnit(t *testing.T) {
	for _, c := range []struct {
		hi   float64
		want []string
	}{
		{700, []string{"0 B", "200 B", "400 B", "600 B"}},
		{5 << 10, []string{"0 B", "1.0 KiB", "2.0 KiB", "3.0 KiB", "4.0 KiB", "5.0 KiB"}},
		{1.3 * (1 << 20), []string{"0 B", "512 KiB", "1.0 MiB"}},
	} {
		var got []string
		for _, tick := range byteTicks(0, c.hi) {
			got = append(got, tick.label)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("up to %g: %q, want %q", c.hi, got, c.want)
		}
	}
}

func TestLayerAxisNamesFewLayers(t *testing.T) {
	few := layerAxis([]verification.Layer{{Value: "a"}, {Value: "b"}})
	if !few.slanted || few.max != 2 || len(few.ticks) != 2 || few.ticks[1].label != "b" || few.ticks[1].at != 1.5 {
		t.Errorf("axis of two layers: %+v", few)
	}
	if many := layerAxis(make([]verification.Layer, maxNamed+1)); many.slanted || many.max != maxNamed+1 ||
		!strings.HasPrefix(many.ticks[0].label, "layer") {
		t.Errorf("axis of many layers: %+v", many)
	}
}

// Weights that are exact have no bar; the note counts them.
func TestErrorsOfWeights(t *testing.T) {
	db := func(v float64) *Error { return &Error{SQNR: &v} }
	r := &Report{Weights: []Weight{
		{Tensor: "good", Figures: Figures{Error: db(50)}},
		{Tensor: "exact", Figures: Figures{Error: &Error{Exact: true}}},
		{Tensor: "unchanged"},
		{Tensor: "bad", Figures: Figures{Error: db(-2)}},
		{Tensor: "exact too", Figures: Figures{Error: &Error{Exact: true}}},
	}}
	f, c := errorByLayer(r)
	if want := []string{"bad", "good"}; !slices.Equal(c.labels, want) ||
		!slices.Equal(c.series[0].values, []float64{0, 50}) {
		t.Errorf("bars %q of %v, want %q of 0 and 50", c.labels, c.series[0].values, want)
	}
	if !strings.HasSuffix(f.Note, "Not shown: 2 exact.") {
		t.Errorf("note %q", f.Note)
	}
}
