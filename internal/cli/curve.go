package cli

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/internal/memplan"
)

// tenths is how many lines a curve has, and barWidth how wide its longest bar is.
const (
	tenths   = 10
	barWidth = 40
)

// overTime is what is alive in each tenth of a run at most, and where.
func overTime(r *memplan.Run) *Table {
	return curve(len(r.Steps), r.Peak, func(i int) (int64, string) { return r.Steps[i].Bytes, r.Steps[i].Node })
}

// curve is the most of each tenth of n steps, as a part of the peak.
func curve(n int, peak int64, step func(i int) (bytes int64, name string)) *Table {
	t := &Table{Indent: "  ", Right: "rlrl"}
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
		t.Add(steps, bar(share(most, peak)), size(most), abridged(name))
	}
	return t
}

// bar is a line of so much of the width, in eighths of a character.
func bar(share float64) string {
	eighths := int(share*barWidth*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
