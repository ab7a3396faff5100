package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

// chosen is a search over one weight.
func chosen() *pass.Search {
	near, far, none, some := 41.5, 12.25, 0.0, 0.04
	return &pass.Search{
		Measure: "noise", Samples: 8, Chosen: 1,
		Layers: []pass.Sensitivity{{Tensors: []string{hostile}, Consumers: []string{"MatMul m"}, Bytes: 400,
			Method: "weight-int8", Variants: []pass.Variant{
				{Method: "weight-int4", Bytes: 50, Sensitivity: 0.1}, {Method: "weight-int8", Bytes: 100, Sensitivity: 0.001},
			}}},
		Trials: []pass.Trial{{What: "a", Bytes: 500, SQNR: &far, Drop: &some},
			{What: "b", Bytes: 900, SQNR: &near, Drop: &none, Accepted: true}},
	}
}

func TestSearchIsShown(t *testing.T) {
	r := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Search: chosen()}}).build(t)
	valid(t, r)
	var md bytes.Buffer
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	page := html(t, r)
	for _, want := range []string{"chosen by measurement (--auto)", "900 bytes, output SQNR 41.5 dB", "30.0 dB",
		"10.0 dB"} {
		if !strings.Contains(md.String(), want) || !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, want := range []string{"File size and accuracy", "2: b, 900 B", "-4<", "<b>chosen</b>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("a name got through as it is")
	}
}

// A sensitivity alone has no trials.
func TestSearchWithoutTrials(t *testing.T) {
	s := chosen()
	s.Trials = nil
	r := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Search: s}}).build(t)
	valid(t, r)
	if page := html(t, r); strings.Contains(page, "File size and accuracy") {
		t.Error("there is nothing to draw")
	}
}

func TestParetoPointsAreNotDominated(t *testing.T) {
	all := []point{{3, -1}, {1, -5}, {2, -5}, {2, -3}, {4, -2}, {5, 0}}
	line := pareto(all)
	for _, p := range all {
		on := false
		for _, q := range line {
			on = on || q == p
		}
		beaten := false
		for _, q := range all {
			beaten = beaten || q != p && q.X <= p.X && q.Y >= p.Y
		}
		if on == beaten {
			t.Errorf("%v is on the line: %v, beaten: %v", p, on, beaten)
		}
	}
}
