package kernel

import "math"

// CodebookEntries is the maximum number of entries of a Codebook.
const CodebookEntries = 16

// Scales of blocks are bytes: a sign and one of 127 magnitudes of equal ratios, octaveSteps an octave. Magnitude 0 is
// the scale 0.
const (
	scaleSign    = 0x80
	maxMagnitude = 127
	octaveSteps  = 8
)

// A Codebook has ascending entries between -1 and 1 in the tables that its kernels read.
type Codebook struct {
	// between an entry and the next one, by the level of the search and the bits known; +Inf after the last
	limits  [4][8]float32
	entries [CodebookEntries]float32
	scales  scaleSearch
	nearest entrySearch
}

// NewCodebook makes the tables of up to 16 entries, each but the last with the limit to the next one. Scales are
// positive, in equal ratios, by their magnitude from 1 to 127.
func NewCodebook(entries, limits, scales []float32) *Codebook {
	c, last := &Codebook{}, len(entries)-1
	for i := range c.entries {
		c.entries[i] = entries[min(i, last)]
	}
	for level := range c.limits {
		for known := range 1 << level {
			c.limits[level][known] = float32(math.Inf(1))
			// The limit after the last entry whose index begins with the known bits and a 0.
			if at := 8>>level - 1 + known<<(4-level); at < last {
				c.limits[level][known] = limits[at]
			}
		}
	}
	c.scales.init(entries, scales)
	c.nearest.init(limits[:last], scales)
	return c
}

// entry is the index of the entry that is nearest to y.
func (c *Codebook) entry(y float32) (index byte) {
	for level := range c.limits {
		bit := byte(0)
		if y > c.limits[level][index] {
			bit = 1
		}
		index = index<<1 | bit
	}
	return index
}

// saturated is v within the range of the integers up to most.
func saturated(v, most int32) int32 { return min(max(v, -most-1), most) }

// cells is the number of equal parts of the magnitudes of numbers relative to a scale, which have an element each in
// tables, for either sign. Most codebooks have at most one limit between entries in each cell.
const cells = 16
