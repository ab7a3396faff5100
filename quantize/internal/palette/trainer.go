package palette

import (
	"math"
	"slices"
)

// A trainer finds codebooks.
type trainer struct {
	*Layout
	*scaler
}

// rounds is the number of times that scales and entries are fitted to each other.
const rounds = 4

// train finds the codebook of a sample of whole blocks. Values are relative to the maximum magnitude of the weight.
func (t *trainer) train(v values) *codebook {
	if t.Vector > 1 {
		return t.trainVectors(v)
	}
	zeros := 0
	for _, x := range v.x {
		if x == 0 {
			zeros++
		}
	}
	// More zeros than an entry has elements on average: pruned weights stay sparse.
	pinned := zeros*t.Entries > len(v.x) // zeros stay exact
	if t.Block == 0 {
		return t.rounded(kmeans(pointsOf(v, t.intervals()), t.Entries), pinned)
	}
	v = v.padded(t.Block) // the last group may end within a block
	blocks := len(v.x) / int(t.Block)
	f := &fitting{trainer: t, values: v, first: make([]byte, blocks), indices: make([]byte, len(v.x))}
	c := t.rounded(kmeans(f.points(), t.Entries), pinned)
	// Scales fit entries and entries fit scales in turn, as in Lloyd's algorithm.
	for range rounds {
		// Rounded in each round: the next one fits scales to the entries as they are stored.
		c = t.rounded(f.refit(c), pinned)
	}
	return c
}

// intervals is the number of those that values are counted in.
func (t *trainer) intervals() int { return min(max(64*t.Entries, 1024), 4096) }

// rounded are entries as float32. With scales the largest magnitude is 1, so that no product exceeds the largest
// weight.
func (t *trainer) rounded(entries []float64, pinned bool) *codebook {
	// The entry nearest to 0 becomes 0, so that zeros are stored exactly.
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
	unit, scales := 1., t.scaler
	if t.Block == 0 {
		scales = nil
	} else if unit = max(math.Abs(entries[0]), math.Abs(entries[len(entries)-1])); unit == 0 {
		unit = 1
	}
	c := make([]float32, len(entries))
	for i, e := range entries {
		c[i] = float32(e / unit)
	}
	return newCodebook(c, scales)
}

// A fitting is a sample, in blocks, whose scales are fitted to entries and entries to scales. The error that counts is
// that of values times scales: values have the square of their scale as weight.
type fitting struct {
	*trainer
	values
	first   []byte // magnitudes of the scales of the largest elements
	indices []byte
}

// points are the values of blocks relative to their largest element.
func (f *fitting) points() []point {
	y, weights := make([]float32, len(f.x)), make([]float32, len(f.x))
	f.magnitudes(f.first, f.x, int(f.Block))
	for b, s := range f.first {
		from := b * int(f.Block)
		if peak(f.x[from:][:f.Block]) < 0 {
			// The largest element becomes 1 in each block, whatever its sign: entries need not be symmetric.
			s |= scaleSign
		}
		for i := from; i < from+int(f.Block); i++ {
			y[i], weights[i] = float32(f.x[i]*f.under[s]), float32(f.of[s]*f.of[s])*f.weight(i)
		}
	}
	return pointsOf(values{y, weights}, f.intervals())
}

// weight is the importance of element i.
func (v values) weight(i int) float32 {
	if v.important == nil {
		return 1
	}
	return v.important[i]
}

// refit fits scales to c, and returns the entries that fit these.
func (f *fitting) refit(c *codebook) []float64 {
	magnitudes := slices.Clone(f.first)
	f.search(magnitudes, f.values, int(f.Block), c)
	c.assign(f.indices, f.x, magnitudes, int(f.Block))
	var sum, weight [256]float64
	for b, m := range magnitudes {
		from, s := b*int(f.Block), float64(f.of[m])
		for i, e := range f.indices[from:][:f.Block] {
			s2 := s * float64(f.weight(from+i))
			sum[e] += float64(float64(f.x[from+i]) * s2)
			weight[e] += float64(s * s2)
		}
	}
	entries := make([]float64, f.Entries)
	for i := range entries {
		if entries[i] = float64(c.entries[i]); weight[i] > 0 {
			entries[i] = sum[i] / weight[i]
		}
	}
	return entries
}
