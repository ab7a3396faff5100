package report

import (
	"fmt"
	"math"
)

// A tick is a labelled position on an axis.
type tick struct {
	at    float64
	label string
	full  string // unabbreviated label; "" if label is not abbreviated
}

// ticksWanted is about how many ticks an axis has; there may be one more or a few less.
const ticksWanted = 6

// niceStep is the distance of ticks over a range: 1, 2 or 5 times a power of ten. The algorithm is Heckbert's:
// Nice numbers for graph labels, Graphics Gems (1990), pages 61 to 63.
func niceStep(span float64) float64 {
	return niceNumber(niceNumber(span, false)/(ticksWanted-1), true)
}

// niceNumber is a number near x, or the next one not below x.
func niceNumber(x float64, near bool) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	bounds := [...]float64{1, 2, 5}
	if near {
		bounds = [...]float64{1.5, 3, 7}
	}
	for i, nice := range [...]float64{1, 2, 5} {
		if f := x / power; f < bounds[i] || !near && f == bounds[i] {
			return nice * power
		}
	}
	return 10 * power
}

// ticks are the multiples of a nice number of units from lo to hi. least is the smallest step in units.
func ticks(lo, hi, unit, least float64, label func(v float64) string) []tick {
	if !(hi > lo) {
		return nil
	}
	step := max(niceStep((hi-lo)/unit), least) * unit
	var ts []tick
	// Multiples of the step, not sums: rounding errors would add up. Ceil of a small negative number is -0, which + 0 makes
	// 0.
	for i := math.Ceil(lo / step); i*step <= hi; i++ {
		ts = append(ts, tick{at: i * step, label: label(i*step + 0)})
	}
	return ts
}

// byteTicks are numbers of bytes, round in their binary unit.
func byteTicks(lo, hi float64) []tick {
	unit, least := 1.0, 1.0
	for hi/unit >= 1024 {
		unit, least = unit*1024, 0
	}
	if lo/unit >= 10 {
		least = 1 // size has no decimals
	}
	return ticks(lo, hi, unit, least, func(v float64) string { return size(int64(v)) })
}

func decibelTicks(lo, hi float64) []tick {
	return ticks(lo, hi, 1, 1, func(v float64) string { return fmt.Sprintf("%g dB", v) })
}

func numberTicks(lo, hi float64) []tick {
	return ticks(lo, hi, 1, 0, func(v float64) string { return fmt.Sprintf("%.4g", v) })
}

// stepTicks number the steps of a run from 1; step i spans i-1 to i.
func stepTicks(what string, steps int) []tick {
	ts := ticks(0, float64(steps), 1, 1, func(v float64) string { return what + " " + count(int64(v)) })
	for i := range ts {
		ts[i].at -= 0.5
	}
	return ts[min(1, len(ts)):]
}
