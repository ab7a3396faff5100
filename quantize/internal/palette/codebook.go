package palette

import (
	"math"
	"math/bits"
	"slices"
)

// A codebook is the entries of one group, relative to the maximum magnitude of the weight.
type codebook struct {
	entries []float32 // ascending
	limits  []float32 // between an entry and the next one, and +Inf
	first   []byte    // the first entry that a value of each of equal intervals from -1 to 1 may have
	zero    byte      // the entry that is nearest to 0
	*steps            // nil without scales
}

// steps find entries without a search: a value near a limit may have the entry on its other side.
type steps struct {
	entry [256]float32
	index [numSteps]byte // the entry that is nearest to the middle of each of equal intervals from -1 to 1
}

const numSteps = 1 << 12

// newCodebook makes the lookup tables, that of steps for weights with scales.
func newCodebook(entries []float32, scaled bool) *codebook {
	c := &codebook{entries: entries, limits: make([]float32, len(entries)), first: make([]byte, 4*len(entries))}
	for i := range entries {
		c.limits[i] = float32(math.Inf(1))
		if i+1 < len(entries) {
			c.limits[i] = entries[i]/2 + entries[i+1]/2
		}
	}
	n, at := len(c.first), 0
	for i := 1; i < n; i++ { // the first interval has all values below it, too
		for c.limits[at] < float32(2*i-1)/float32(n)-1 { // half an interval before it, for rounding
			at++
		}
		c.first[i] = byte(at)
	}
	c.zero = byte(c.nearest(0))
	if scaled {
		c.steps = &steps{}
		copy(c.entry[:], entries)
		at = 0
		for i := range c.index {
			for float32(2*i+1)/numSteps-1 > c.limits[at] {
				at++
			}
			c.index[i] = byte(at)
		}
	}
	return c
}

// step is the entry of the interval of v.
func (s *steps) step(v float32) byte {
	return s.index[min(max(int32(float32(v*(numSteps/2))+numSteps/2), 0), numSteps-1)&(numSteps-1)]
}

// nearest is the entry that is nearest to v.
func (c *codebook) nearest(v float32) int {
	i := int(c.first[cell(v, len(c.first))])
	for v > c.limits[i] {
		i++
	}
	return i
}

// A trainer finds codebooks.
type trainer struct {
	*Layout
	*scaler
}

// rounds is the number of times that scales and entries are fitted to each other.
const rounds = 2

// train finds the codebook of a sample of whole blocks, which it divides by their scales. Values are relative to the maximum magnitude of the
// weight.
func (t *trainer) train(x []float32) *codebook {
	block := len(x)
	if t.Block > 0 {
		block = int(t.Block)
	}
	scales, y, zeros := make([]float32, 0, len(x)/max(1, block)+1), make([]float32, len(x)), 0
	for i := 0; i < len(x); i += block {
		b := x[i:min(i+block, len(x))]
		s := float32(1)
		if t.Block > 0 {
			s = t.of[t.first(b, 1)]
		}
		scales = append(scales, s)
		for j, v := range b {
			y[i+j] = over(v, s)
			if v == 0 {
				zeros++
			}
		}
	}
	entries := kmeans(pointsOf(y, t.intervals()), t.Entries)
	pinned := zeros*t.Entries > len(x) // zeros stay exact
	c := t.rounded(entries, pinned)
	if t.Block == 0 {
		return c
	}
	for range rounds {
		c = t.refit(c, x, y, scales, pinned)
	}
	return c
}

// intervals is the number of those that values are counted in.
func (t *trainer) intervals() int { return min(max(64*t.Entries, 1024), 4096) }

// rounded are entries as float32. With scales the largest magnitude is 1, so that no product exceeds the largest weight.
func (t *trainer) rounded(entries []float64, pinned bool) *codebook {
	if pinned {
		at := 0
		for i, e := range entries {
			if math.Abs(e) < math.Abs(entries[at]) {
				at = i
			}
		}
		entries[at] = 0
	}
	slices.Sort(entries)
	unit := 1.
	if t.Block > 0 {
		if unit = max(math.Abs(entries[0]), math.Abs(entries[len(entries)-1])); unit == 0 {
			unit = 1
		}
	}
	c := make([]float32, len(entries))
	for i, e := range entries {
		c[i] = float32(e / unit)
	}
	return newCodebook(c, t.Block > 0)
}

// refit fits the scales of blocks x to c, and then the entries to them.
func (t *trainer) refit(c *codebook, x, y, scales []float32, pinned bool) *codebook {
	sum, weight := make([]float64, t.Entries), make([]float64, t.Entries)
	for i := range scales {
		first := i * int(t.Block)
		b := x[first:min(first+int(t.Block), len(x))]
		s := t.of[t.second(c, b, scales[i], 1)]
		scales[i] = s
		if s == 0 {
			continue
		}
		square, inverse := float64(s)*float64(s), 1/s
		for _, v := range b {
			e := c.step(float32(v * inverse))
			sum[e] += float64(float64(v) * float64(s))
			weight[e] += square
		}
	}
	entries := make([]float64, t.Entries)
	for i := range entries {
		if entries[i] = float64(c.entries[i]); weight[i] > 0 {
			entries[i] = sum[i] / weight[i]
		}
	}
	return t.rounded(entries, pinned)
}

// fit is the scale that minimizes the squared error of b · unit with the entries that are nearest with scale s.
func (c *codebook) fit(b []float32, s, unit float32) float32 {
	if s == 0 {
		return 0
	}
	var product, square float32
	inverse := unit / s
	for _, v := range b {
		y := float32(v * inverse)
		e := c.entry[c.step(y)]
		product += float32(y * e)
		square += float32(e * e)
	}
	if square == 0 || product <= 0 {
		return s
	}
	return min(max(float32(s*float32(product/square)), -1), 1)
}

// fittedEntries is the number of entries up to which scales are fitted: with more, clipping costs more than the fit gains.
const fittedEntries = 16

// first is the byte of the scale of b · unit by its largest element.
func (t *trainer) first(b []float32, unit float32) byte {
	if t.Entries > fittedEntries {
		return t.cover(peak(b) * unit)
	}
	return t.round(peak(b) * unit)
}

// second is the byte of the scale of b · unit that fits the entries of c, from its first scale s.
func (t *trainer) second(c *codebook, b []float32, s, unit float32) byte {
	if t.Entries > fittedEntries {
		return t.round(s)
	}
	return t.round(c.fit(b, s, unit))
}

// over is v / s, and 0 for blocks of zeros.
func over(v, s float32) float32 {
	if s == 0 {
		return 0
	}
	return v / s
}

// peak is the element of the largest magnitude, the negative one of equal ones.
func peak(b []float32) float32 {
	most := uint32(0) // with the sign as the lowest bit
	for _, v := range b {
		most = max(most, bits.RotateLeft32(math.Float32bits(v), 1))
	}
	return math.Float32frombits(bits.RotateLeft32(most, -1))
}
