package cli

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/report/memoryplan"
)

// tenths is the number of lines of a curve, and barWidth the width of its longest bar.
const (
	tenths   = 10
	barWidth = 40
)

// overTime is the maximum of live bytes in each tenth of a run, and its node.
func overTime(r *memoryplan.Run) *textTable {
	return curve(len(r.Steps), r.Peak, func(i int) (int64, string) { return r.Steps[i].Bytes, r.Steps[i].Node })
}

// curve is the maximum in each tenth of n steps, as bars relative to the peak.
func curve(n int, peak int64, step func(i int) (bytes int64, name string)) *textTable {
	t := &textTable{indent: "  ", align: "rlrl"}
	if peak == 0 {
		return t
	}
	for i := range min(n, tenths) {
		from, to := i*n/min(n, tenths), (i+1)*n/min(n, tenths)
		most, name := step(from)
		for j := from; j < to; j++ {
			if bytes, at := step(j); bytes > most {
				most, name = bytes, at
			}
		}
		steps := fmt.Sprint(from + 1)
		if to > from+1 {
			steps = fmt.Sprintf("%d–%d", from+1, to)
		}
		t.add(steps, bar(fraction(most, peak)), size(most), abridged(name))
	}
	return t
}

// bar is a line of a fraction of the width, in eighths of a character.
func bar(fraction float64) string {
	eighths := int(fraction*barWidth*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
