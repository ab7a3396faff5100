package palette

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A codebook is the entries of one group, relative to the maximum magnitude of the weight.
type codebook struct {
	entries []float32 // ascending
	limits  []float32 // between an entry and the next one, and +Inf
	first   []byte    // the first entry that a value of each of equal intervals from -1 to 1 may have
	zero    byte      // the entry that is nearest to 0
}

// newCodebook makes the lookup table for nearest: cells intervals for each entry.
func newCodebook(entries []float32, cells int) *codebook {
	c := &codebook{entries: entries, limits: make([]float32, len(entries)), first: make([]byte, cells*len(entries))}
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
	return c
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
	cells int // of lookup tables, for each entry
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
			s = peak(b)
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
	largest := 1.
	if t.Block > 0 {
		if largest = max(math.Abs(entries[0]), math.Abs(entries[len(entries)-1])); largest == 0 {
			largest = 1
		}
	}
	c := make([]float32, len(entries))
	for i, e := range entries {
		c[i] = float32(e / largest)
	}
	return newCodebook(c, t.cells)
}

// refit fits the scales of blocks x to c, and then the entries to them.
func (t *trainer) refit(c *codebook, x, y, scales []float32, pinned bool) *codebook {
	sum, weight := make([]float64, t.Entries), make([]float64, t.Entries)
	for i := range scales {
		first := i * int(t.Block)
		b := x[first:min(first+int(t.Block), len(x))]
		s := c.fit(b, scales[i])
		scales[i] = s
		square := float64(s) * float64(s)
		for _, v := range b {
			e := c.nearest(over(v, s))
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

// fit is the scale that minimizes the squared error of b with the entries that are nearest with scale s.
func (c *codebook) fit(b []float32, s float32) float32 {
	if s == 0 {
		return 0
	}
	var product, square float32
	inverse := 1 / s
	for _, v := range b {
		y := float32(v * inverse)
		e := c.entries[c.nearest(y)]
		product += float32(y * e)
		square += float32(e * e)
	}
	if square == 0 || product <= 0 {
		return s
	}
	return min(max(float32(s*float32(product/square)), -1), 1)
}

// over is v / s, and 0 for blocks of zeros.
func over(v, s float32) float32 {
	if s == 0 {
		return 0
	}
	return v / s
}

// peak is the element of the largest magnitude, the first of equal ones, or 0 if float16 cannot represent it as a scale.
func peak(b []float32) (p float32) {
	largest := float32(0x1p-25)
	for _, v := range b {
		if a := abs(v); a > largest {
			largest, p = a, v
		}
	}
	return p
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// halves are scales rounded to float16, and as it stores them.
func halves(scales []float32, stored []uint16) {
	kernel.F16FromF32(stored, scales)
	kernel.F32FromF16(scales, stored)
}
