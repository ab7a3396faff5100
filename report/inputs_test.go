package report

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report/verification"
)

// The samples of a verification have the uses of data of the same digest.
func TestUsesOfSamplesAreMarked(t *testing.T) {
	for _, c := range []struct {
		use, sum, verified string
		want               string
	}{
		{"training", "a", "a", ", which also trained and validated the result"}, {"training", "a", "b", ""},
		{"calibration", "a", "a", ", which also calibrated and validated the result"}, {"training", "", "", ""},
		{"calibration", "c", "c", ", which also calibrated, chose (--auto) and validated the result"},
	} {
		v := &verification.Result{Data: &verification.Data{Name: "x.npz", Samples: 5, SHA256: c.verified}}
		got := markUses(v, []Data{{Use: "search", SHA256: "c"}, {Use: c.use, SHA256: c.sum},
			{Use: "validation", SHA256: c.sum}}).Data
		if text := got.Text(); text != "5 samples of x.npz"+c.want {
			t.Errorf("%+v: %+v, %s", c, got, text)
		}
		gate := []Gate{{Name: "max-accuracy-drop", Held: true}}
		if d := NewVerdict(gate, v); d.Reused != (c.want != "") || strings.Contains(d.Text(), "also used") != d.Reused ||
			(d.outcome().Class == "passed qualified") != d.Reused {
			t.Errorf("%+v: verdict %+v", c, d)
		}
		if d := NewVerdict([]Gate{{Name: "min-ratio", Held: true}}, v); d.Reused {
			t.Errorf("%+v: a gate on files", c)
		}
	}
	if markUses(nil, nil) != nil {
		t.Error("a verification out of nothing")
	}
}
