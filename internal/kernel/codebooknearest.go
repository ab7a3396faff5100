package kernel

import "math"

// Nearest has numbers relative to the scale as 16-bit integers: unitStep16 is that of 1. Larger ones than 32767/28416
// are rounded to that. The highest bits are the cell.
const (
	unitStep16 = 222 << 7
	cellBits   = 11
)

// An entrySearch is the tables of Nearest: the index of the nearest entry for the first number of each cell, which
// grows at the limits in the cell.
type entrySearch struct {
	inverse [2 * (maxMagnitude + 1)]float32 // of scales by their bytes
	first   [2 * cells]byte                 // of positive numbers, and of negative ones
	// lower and upper bytes of those between an entry and the next one; 32767 after the last
	limits [2][CodebookEntries]byte
	steps  int // maximum number of limits in a cell, at least 1
}

func (s *entrySearch) init(limits, scales []float32) {
	for m := 1; m <= maxMagnitude; m++ {
		s.inverse[m] = unitStep16 / scales[m]
		s.inverse[m|scaleSign] = -s.inverse[m]
	}
	for i := range s.limits[0] {
		l := uint16(math.MaxInt16)
		if i < len(limits) {
			l = uint16(int16(math.RoundToEven(float64(limits[i]) * unitStep16)))
		}
		s.limits[0][i], s.limits[1][i] = byte(l), byte(l>>8)
	}
	s.steps = 1
	for cell := -cells; cell < cells; cell++ {
		// The entry of the least number of the cell; the limits that its greatest number exceeds are what the search has
		// to step over.
		index, first := 0, int16(cell)<<cellBits
		for first > s.limit(index) {
			index++
		}
		s.first[cell&(2*cells-1)] = byte(index)
		for first += 1<<cellBits - 1; first > s.limit(index); s.steps = max(s.steps,
			index-int(s.first[cell&(2*cells-1)])) {
			index++
		}
	}
}

// limit is the one after an entry.
func (s *entrySearch) limit(index int) int16 {
	return int16(uint16(s.limits[1][index])<<8 | uint16(s.limits[0][index]))
}

// Nearest writes the indices of the entries that are nearest to the numbers of each block of x relative to its scale,
// of that sign, to dst. Numbers are rounded to 16 bits for it.
func (c *Codebook) Nearest(dst []byte, x []float32, scales []byte, block int) {
	within("dst", len(dst), len(scales)*block)
	within("x", len(x), len(scales)*block)
	for b := c.nearestBulk(dst, x, scales, block); b < len(scales); b++ {
		for i := b * block; i < (b+1)*block; i++ {
			dst[i] = c.nearest.entry(x[i] * c.nearest.inverse[scales[b]])
		}
	}
}

// entry is the index of the entry that is nearest to y.
func (s *entrySearch) entry(y float32) byte {
	q := saturated(int32(math.RoundToEven(float64(y))), math.MaxInt16)
	index := int(s.first[q>>cellBits&(2*cells-1)])
	for range s.steps {
		if q > int32(s.limit(index)) {
			index++
		}
	}
	return byte(index)
}
