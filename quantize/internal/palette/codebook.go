package palette

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A codebook is the entries of one group, relative to the maximum magnitude of the weight.
type codebook struct {
	entries []float32        // ascending
	limits  []float32        // between an entry and the next one, and +Inf
	first   []byte           // the first entry that a value of each of equal intervals from -1 to 1 may have
	*steps                   // with scales
	kernel  *kernel.Codebook // with scales, of up to 16 entries
	vectors *vectors         // of vectors, which have none of the tables above
}

// steps find entries without a search: those that are nearest to the middle of each of equal intervals from -1 to 1. A
// value near a limit may have the entry on its other side.
type steps [numSteps]byte

const numSteps = 1 << 12

// newCodebook makes the lookup tables, those of scaled values if there are scales.
func newCodebook(entries []float32, scales *scaler) *codebook {
	c := &codebook{entries: entries, limits: make([]float32, len(entries)), first: make([]byte, 4*len(entries))}
	for i := range entries {
		c.limits[i] = float32(math.Inf(1))
		if i+1 < len(entries) {
			c.limits[i] = between(entries[i], entries[i+1])
		}
	}
	n, at := len(c.first), 0
	for i := 1; i < n; i++ { // the first interval has all values below it, too
		for c.limits[at] < float32(2*i-1)/float32(n)-1 { // half an interval before it, for rounding
			at++
		}
		c.first[i] = byte(at)
	}
	if scales == nil {
		return c
	}
	if len(entries) <= kernel.CodebookEntries {
		c.kernel = kernel.NewCodebook(entries, c.limits, scales.of[:])
	}
	c.steps = &steps{}
	at = 0
	for i := range c.steps {
		// By the middle of the interval: an element has the wrong one of two neighbours only within half an interval of
		// their limit.
		for float32(2*i+1)/numSteps-1 > c.limits[at] {
			at++
		}
		c.steps[i] = byte(at)
	}
	return c
}

// between is the middle of a and b, and a where there is no number between them.
func between(a, b float32) float32 {
	if m := a/2 + b/2; m < b {
		return m
	}
	return a
}

// step is the entry of the interval of v.
func (s *steps) step(v float32) byte {
	return s[min(max(int32(float32(v*(numSteps/2))+numSteps/2), 0), numSteps-1)&(numSteps-1)]
}

// nearest is the entry that is nearest to v.
func (c *codebook) nearest(v float32) int {
	i := int(c.first[cell(v, len(c.first))])
	for v > c.limits[i] {
		i++
	}
	return i
}

// assign writes the indices of the entries that are nearest to the values of each block of x relative to its scale, to
// dst.
func (c *codebook) assign(dst []byte, x []float32, scales []byte, block int) {
	if c.kernel != nil {
		c.kernel.Nearest(dst, x, scales, block)
		return
	}
	under := &scaleTable().under
	for b, s := range scales {
		for i := b * block; i < (b+1)*block; i++ {
			dst[i] = c.step(float32(x[i] * under[s]))
		}
	}
}

// errorOf is the weighted squared error of a block with a scale and its inverse.
func (c *codebook) errorOf(block values, scale, inverse float32) (sum float32) {
	for i, x := range block.x {
		d := x - float32(c.entries[c.step(float32(x*inverse))]*scale)
		sum += float32(float32(d*d) * block.weight(i))
	}
	return sum
}
