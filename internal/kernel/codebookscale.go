package kernel

import (
	"math"
	"slices"
)

// StepsDown and StepsUp are the numbers of scales below and above the given one that SearchScale tries.
const (
	StepsDown = 1
	StepsUp   = 3
)

// tried is the number of scales that SearchScale tries.
const tried = StepsDown + 1 + StepsUp

// SearchScale has the magnitudes of numbers as 8-bit integers: unitStep is that of 1. Those relative to a scale that is
// one step below the magnitude of the block, rounded, are below 255/222. Numbers relative to the first scale that it
// tries have fraction bits more; other scales multiply them by a ratio of ratioBits.
const (
	unitStep  = 222
	fraction  = 5
	ratioBits = 15 - fraction
)

// A scaleSearch is the tables of SearchScale.
type scaleSearch struct {
	inverse [maxMagnitude + 1]float32 // of the first scale that is tried for each magnitude
	squares [tried]float32            // of the ratios of scales to the first one
	ratios  [tried]int16              // of the first scale to scales
	// for positive and negative numbers; one of the pairs of each cell has the nearest entry
	pairs [][2]entryPairs
}

// An entryPairs is a pair of entries for each cell: their mean, modulo 256, and half of their distance.
type entryPairs struct {
	mean [cells]byte
	half [cells]int8
}

func (s *scaleSearch) init(entries, scales []float32) {
	first := scales[maxMagnitude-tried+1:]
	for m := range s.inverse {
		s.inverse[m] = unitStep << fraction * (first[StepsDown] / first[0]) / scales[max(1, m)]
	}
	for i := range s.squares {
		ratio := first[i] / first[0]
		s.squares[i], s.ratios[i] = float32(ratio*ratio), int16(math.RoundToEven(float64((1<<ratioBits)/ratio)))
	}
	var near [2][cells][]int
	pairs := 1
	for sign := range near {
		// Negative numbers are searched by their magnitudes among the negated entries.
		rounded := make([]int, len(entries)) // even, for means
		for i, e := range entries {
			rounded[i] = int(math.RoundToEven(float64(e)*(unitStep/2))) * 2 * (1 - 2*sign)
		}
		rounded = slices.Compact(rounded)
		for cell := range cells {
			near[sign][cell] = nearCell(rounded, cell)
			pairs = max(pairs, (len(near[sign][cell])+1)/2)
		}
	}
	s.pairs = make([][2]entryPairs, pairs)
	for i := range s.pairs {
		for sign := range near {
			for cell, n := range near[sign] {
				s.pairs[i][sign].set(cell, n[min(2*i, len(n)-1)], n[min(2*i+1, len(n)-1)])
			}
		}
	}
}

// nearCell are the entries that are nearest to the magnitudes of a cell. They are limited so that no error exceeds 127:
// those above 110 may be smaller.
func nearCell(entries []int, cell int) (near []int) {
	const size = 256 / cells
	first, last := cell*size, cell*size+size-1
	from, to := closest(entries, first), closest(entries, last)
	for _, e := range entries[min(from, to) : max(from, to)+1] {
		near = append(near, min(max(e, last-math.MaxInt8), first+math.MaxInt8-1))
	}
	return near
}

// closest is the index of the entry that is nearest to m.
func closest(entries []int, m int) (at int) {
	for i, e := range entries {
		if max(m-e, e-m) < max(m-entries[at], entries[at]-m) {
			at = i
		}
	}
	return at
}

func (p *entryPairs) set(cell, a, b int) {
	p.mean[cell], p.half[cell] = byte((a+b)/2), int8(max(a-b, b-a)/2)
}

// distance is that of a magnitude from the nearer one of its cell's entries.
func (p *entryPairs) distance(m byte) int32 {
	d := int32(int8(m - p.mean[m/(256/cells)]))
	d = max(d, -d) - int32(p.half[m/(256/cells)])
	return max(d, -d)
}

// SearchScale replaces the magnitude of the scale of each block of x by that of least squared error, of itself,
// StepsDown below and StepsUp above, with either sign: bit 7. Numbers are rounded to 8 bits and a sign for it.
// Magnitudes are from 0 to 127; 0 stays.
func (c *Codebook) SearchScale(magnitudes []byte, x []float32, block int) {
	within("x", len(x), len(magnitudes)*block)
	for n := c.searchScaleBulk(magnitudes, x, block); n < len(magnitudes); n++ {
		if magnitudes[n] > 0 {
			magnitudes[n] = c.scales.best(x[n*block:][:block], int(magnitudes[n]))
		}
	}
}

// best is the scale of least error times square, a float32 whose lowest bits are replaced by the scale.
func (s *scaleSearch) best(x []float32, magnitude int) byte {
	least := uint32(math.MaxUint32)
	for i, square := range s.squares {
		m, sums := magnitude+i-StepsDown, [2]int32{}
		if m < 1 || m > maxMagnitude {
			continue
		}
		for _, v := range x {
			q, negative := saturated(int32(math.RoundToEven(float64(v*s.inverse[magnitude]))), math.MaxInt16), 0
			if q < 0 {
				q, negative = -q, 1
			}
			// As VPMULHRSW rounds.
			q = min((q*int32(s.ratios[i])+1<<14)>>15, math.MaxUint8)
			for sign := range sums {
				sums[sign] += s.square(byte(q), negative^sign)
			}
		}
		for sign, sum := range sums {
			// Positive floats are ordered like their bits, so one minimum of the error has its scale with it. Eight bits of
			// the error less decide only between scales that are as good.
			least = min(least, math.Float32bits(float32(sum)*square)&^math.MaxUint8|uint32(m|sign*scaleSign))
		}
	}
	return byte(least)
}

// square is the squared error of a magnitude and its sign.
func (s *scaleSearch) square(m byte, sign int) int32 {
	d := int32(math.MaxInt8)
	for i := range s.pairs {
		d = min(d, s.pairs[i][sign].distance(m))
	}
	return d * d
}
