package mcompress

import (
	"testing"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A dry run of another method is worth its time only if the skipped weights are a large part of the file.
func TestNeedsAlternative(t *testing.T) {
	for _, c := range []struct {
		after, skipped int64
		want           bool
	}{
		{after: 990, skipped: 4},
		{after: 990, skipped: 200},
		{after: 990, skipped: 300, want: true},
		{after: 990, skipped: 990, want: true},
		{after: 500, skipped: 400}, // compressed 2×
	} {
		r := &report.Report{Totals: report.Totals{FileBytes: report.Change{Before: 1000, After: c.after}}}
		r.Ledger = []report.Row{{Tensor: "w", Status: pass.Skipped.String(), Before: &report.Stored{Bytes: c.skipped}}}
		if got := needsAlternative(r); got != c.want {
			t.Errorf("%d bytes after, %d of them skipped: %t, want %t", c.after, c.skipped, got, c.want)
		}
	}
}

// The dry run of another method takes too long on a graph of hundreds of thousands of initializers.
func TestNoAlternativeForLargeGraphs(t *testing.T) {
	for _, graph := range []int64{maxGraph, maxGraph + 1} {
		payload := int64(8 * maxGraph)
		all := report.Change{Before: payload + graph, After: payload + graph}
		r := &report.Report{Totals: report.Totals{FileBytes: all,
			TensorBytes: report.Change{Before: payload, After: payload}}}
		r.Ledger = []report.Row{{Tensor: "w", Status: pass.Skipped.String(), Before: &report.Stored{Bytes: payload}}}
		if got, want := needsAlternative(r), graph <= maxGraph; got != want {
			t.Errorf("graph of %d bytes: %t, want %t", graph, got, want)
		}
	}
}
