package report

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report/verification"
)

// A verification is on training data if its samples have the digest of data that a step was trained on.
func TestTrainingDataIsMarked(t *testing.T) {
	for _, c := range []struct {
		use, sum, verified string
		want               bool
	}{
		{"training", "a", "a", true}, {"training", "a", "b", false}, {"calibration", "a", "a", false}, {"training", "", "", false},
	} {
		v := &verification.Result{Data: &verification.Data{Name: "x.npz", Samples: 5, SHA256: c.verified}}
		got := markTrained(v, []Data{{Use: "search", SHA256: "c"}, {Use: c.use, SHA256: c.sum}, {Use: "validation", SHA256: c.sum}}).Data
		if got.Trained != c.want || strings.Contains(got.Text(), "the training data") != c.want {
			t.Errorf("%+v: %+v, %s", c, got, got.Text())
		}
	}
	if markTrained(nil, nil) != nil {
		t.Error("a verification out of nothing")
	}
}
