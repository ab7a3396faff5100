package report

import (
	"testing"

	"github.com/mcompress/mcompress/pass"
)

func TestRemovedLayersAreRanges(t *testing.T) {
	for want, removed := range map[string][]int{
		"1 of 8 layers removed: 3":           {3},
		"3 of 8 layers removed: 1, 3, 5":     {1, 3, 5},
		"5 of 8 layers removed: 0–1, 3, 6–7": {0, 1, 3, 6, 7},
		"7 of 8 layers removed: 0–6":         {0, 1, 2, 3, 4, 5, 6},
	} {
		if got := RemovedText(pass.RemovedLayers{Layers: 8, Removed: removed}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
