package kernel

import "math"

// CodebookEntries is the maximum number of entries of a Codebook.
const CodebookEntries = 16

// maxMagnitude is the largest magnitude of a block's scale.
const maxMagnitude = 127

// StepsDown and StepsUp are the numbers of scales below and above the given one that SearchScale tries.
const StepsDown, StepsUp = 1, 3

// SearchScale has numbers as 8-bit integers: unitStep is that of 1. Numbers relative to a scale that is one step below the magnitude of the
// block, rounded, are below 127/111. Those relative to the first scale that it tries have fraction bits more; other scales multiply them by
// a ratio of ratioBits. Errors are at most maxError.
const (
	unitStep  = 111
	fraction  = 5
	ratioBits = 15 - fraction
	maxError  = 90
)

// tried is the number of scales that SearchScale tries.
const tried = StepsDown + 1 + StepsUp

// A Codebook has ascending entries between -1 and 1 in the tables that its kernels read.
type Codebook struct {
	limits  [4][8]float32             // between an entry and the next one, by the level of the search and the bits known; +Inf after the last
	inverse [maxMagnitude + 1]float32 // of the first scale that is tried for each magnitude
	squares [tried]float32            // of the ratios of scales to the first one
	ratios  [tried]int16              // of the first scale to scales
	limits8 [4][16]int8               // as limits, of 8-bit entries
	rounded [CodebookEntries]int8
	entries [CodebookEntries]float32
}

// NewCodebook makes the tables of up to 16 entries, each but the last with the limit to the next one. Scales are positive, in
// equal ratios, by their magnitude from 1 to 127.
func NewCodebook(entries, limits, scales []float32) *Codebook {
	c, last := &Codebook{}, len(entries)-1
	for i := range c.entries {
		c.entries[i] = entries[min(i, last)]
		c.rounded[i] = int8(math.RoundToEven(float64(c.entries[i]) * unitStep))
	}
	for level := range c.limits {
		for known := range 1 << level {
			c.limits[level][known], c.limits8[level][known] = float32(math.Inf(1)), math.MaxInt8
			if at := 8>>level - 1 + known<<(4-level); at < last {
				c.limits[level][known] = limits[at]
				c.limits8[level][known] = int8((int(c.rounded[at]) + int(c.rounded[at+1])) >> 1)
			}
		}
	}
	first := scales[maxMagnitude-tried+1:]
	for m := range c.inverse {
		c.inverse[m] = unitStep << fraction * (first[StepsDown] / first[0]) / scales[max(1, m)]
	}
	for i := range c.squares {
		ratio := first[i] / first[0]
		c.squares[i], c.ratios[i] = float32(ratio*ratio), int16(math.RoundToEven(float64((1<<ratioBits)/ratio)))
	}
	return c
}

// SearchScale replaces the magnitude of the scale of each block of x by that of least squared error, of itself, StepsDown below and StepsUp
// above, with either sign: bit 7. Numbers are rounded to 8 bits for it. Magnitudes are from 0 to 127; 0 stays.
func (c *Codebook) SearchScale(magnitudes []byte, x []float32, block int) {
	within("x", len(x), len(magnitudes)*block)
	for n := c.searchScaleBulk(magnitudes, x, block); n < len(magnitudes); n++ {
		if magnitudes[n] > 0 {
			magnitudes[n] = c.searchScaleGo(x[n*block:][:block], int(magnitudes[n]))
		}
	}
}

func (c *Codebook) searchScaleGo(x []float32, magnitude int) (best byte) {
	least := float32(math.Inf(1))
	for i, square := range c.squares {
		m, sums := magnitude+i-StepsDown, [2]int32{}
		if m < 1 || m > maxMagnitude {
			continue
		}
		for _, v := range x {
			q := saturated(int32(math.RoundToEven(float64(v*c.inverse[magnitude]))), math.MaxInt16)
			q = saturated((q*int32(c.ratios[i])+1<<14)>>15, math.MaxInt8)
			for sign, q := range [2]int8{int8(q), int8(min(-q, math.MaxInt8))} {
				d := min(max(int32(q)-int32(c.rounded[c.nearest8(q)]), -maxError), maxError)
				sums[sign] += d * d
			}
		}
		for sign, sum := range sums {
			if e := float32(sum) * square; e < least {
				least, best = e, byte(m|sign<<7)
			}
		}
	}
	return best
}

// saturated is v within the range of the integers up to most.
func saturated(v, most int32) int32 { return min(max(v, -most-1), most) }

// nearest8 is the index of the 8-bit entry that is nearest to q.
func (c *Codebook) nearest8(q int8) (index int) {
	for level := range c.limits8 {
		bit := 0
		if q > c.limits8[level][index] {
			bit = 1
		}
		index = index<<1 | bit
	}
	return index
}

// Nearest writes the indices of the entries that are nearest to the numbers of each block of x times its inverse scale, to dst.
func (c *Codebook) Nearest(dst []byte, x, inverse []float32, block int) {
	within("dst", len(dst), len(inverse)*block)
	within("x", len(x), len(inverse)*block)
	for b := c.nearestBulk(dst, x, inverse, block); b < len(inverse); b++ {
		for i := b * block; i < (b+1)*block; i++ {
			dst[i] = c.nearest(x[i] * inverse[b])
		}
	}
}

// nearest is the index of the entry that is nearest to y.
func (c *Codebook) nearest(y float32) (index byte) {
	for level := range c.limits {
		bit := byte(0)
		if y > c.limits[level][index] {
			bit = 1
		}
		index = index<<1 | bit
	}
	return index
}

// BlockPeaks writes the largest magnitude of each block of x to dst, as float32 bits as AbsMaxBits.
func BlockPeaks(dst []uint32, x []float32, block int) {
	within("x", len(x), len(dst)*block)
	for b := blockPeaksBulk(dst, x, block); b < len(dst); b++ {
		dst[b] = absMaxBitsGo(x[b*block:][:block])
	}
}
