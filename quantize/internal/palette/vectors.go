package palette

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// vectors are the entries of a codebook of vectors of consecutive elements (product quantization; Jégou et al., TPAMI
// 2011), ordered by their first elements.
type vectors struct {
	size    int // of a vector
	entries []float32
	first   []float64 // elements, to search by
}

func newVectors(entries []float32, size int) *vectors {
	v := &vectors{size: size, entries: entries}
	for i := 0; i < len(entries); i += size {
		v.first = append(v.first, float64(entries[i]))
	}
	return v
}

// nearest is the entry of least squared distance from x, the first one of equal ones, and that distance. It tries
// entries from the nearest first element on, until first elements alone are farther away.
func (v *vectors) nearest(x []float32) (at int, least float64) {
	least = math.Inf(1)
	up := sort.SearchFloat64s(v.first, float64(x[0]))
	down := up - 1
	// Outwards from the nearest first element, on the side that is nearer.
	for down >= 0 || up < len(v.first) {
		below, above := math.Inf(1), math.Inf(1)
		if down >= 0 {
			below = float64(x[0]) - v.first[down]
		}
		if up < len(v.first) {
			above = v.first[up] - float64(x[0])
		}
		i, d := up, above
		if below < above {
			i, d = down, below
		}
		// Squares of the other elements only add to it, and all entries that are left are farther away in the first.
		if float64(d*d) > least {
			break
		}
		if d := v.distance(x, i); d < least || d == least && i < at {
			at, least = i, d
		}
		if i == up {
			up++
		} else {
			down--
		}
	}
	return at, least
}

// distance is the squared distance of x from an entry.
func (v *vectors) distance(x []float32, entry int) (sum float64) {
	for i, e := range v.entries[entry*v.size:][:v.size] {
		d := float64(x[i]) - float64(e)
		sum += float64(d * d)
	}
	return sum
}

// assign writes the indices of the entries that are nearest to the vectors of x to dst.
func (v *vectors) assign(dst []byte, x []float32) {
	for i := range dst {
		at, _ := v.nearest(x[i*v.size:])
		dst[i] = byte(at)
	}
}

// A cloud is a sample of weighted vectors.
type cloud struct {
	size    int
	x       []float32
	weights []float64
}

// iterations is the maximum number of those of k-means.
const iterations = 20

// kmeans finds k entries: k-means++ (Arthur and Vassilvitskii, SODA 2007) with a fixed seed, then Lloyd's iterations.
func (c *cloud) kmeans(k int) *vectors {
	v := c.seeds(k)
	indices, last := make([]byte, len(c.weights)), make([]byte, len(c.weights))
	for range iterations {
		v.assign(indices, c.x)
		if slices.Equal(indices, last) {
			break
		}
		v = c.means(v, indices)
		copy(last, indices)
	}
	return v
}

// seeds are vectors of the sample, each drawn with a probability proportional to its weighted squared distance from the
// ones before.
func (c *cloud) seeds(k int) *vectors {
	// A fixed seed: the same weight has the same codebook in each run.
	r := rand.New(rand.NewPCG(1, uint64(k)))
	entries, left := make([]float32, 0, k*c.size), slices.Clone(c.weights)
	distance := make([]float64, len(c.weights))
	for i := range distance {
		distance[i] = math.Inf(1)
	}
	for len(entries) < k*c.size {
		at := draw(r, left)
		entries = append(entries, c.x[at*c.size:][:c.size]...)
		one := newVectors(entries[len(entries)-c.size:], c.size)
		for i := range left {
			distance[i] = min(distance[i], one.distance(c.x[i*c.size:], 0))
			left[i] = distance[i] * c.weights[i]
		}
	}
	return c.ordered(entries)
}

// draw is an index with a probability proportional to its weight, 0 if all are 0.
func draw(r *rand.Rand, weights []float64) int {
	sum := 0.
	for _, w := range weights {
		sum += w
	}
	at := float64(r.Float64() * sum)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return 0
}

// means are the weighted means of the vectors of each entry; entries without vectors stay.
func (c *cloud) means(v *vectors, indices []byte) *vectors {
	sums, weights := make([]float64, len(v.entries)), make([]float64, len(v.first))
	for i, e := range indices {
		for j, x := range c.x[i*c.size:][:c.size] {
			sums[int(e)*c.size+j] += float64(float64(x) * c.weights[i])
		}
		weights[e] += c.weights[i]
	}
	entries := slices.Clone(v.entries)
	for i, sum := range sums {
		if w := weights[i/c.size]; w > 0 {
			entries[i] = float32(sum / w)
		}
	}
	return c.ordered(entries)
}

// ordered are entries in the order of their elements.
func (c *cloud) ordered(entries []float32) *vectors {
	rows := slices.Collect(slices.Chunk(entries, c.size))
	slices.SortStableFunc(rows, func(a, b []float32) int { return cmp.Compare(a[0], b[0]) })
	return newVectors(slices.Concat(rows...), c.size)
}

// trainVectors finds the codebook of a sample of whole blocks: of their values relative to their scales, with the
// squares of these as weight.
func (t *trainer) trainVectors(v values) *codebook {
	v = v.padded(lcm(int64(t.Vector), max(1, t.Block)))
	c := &cloud{size: t.Vector, x: slices.Clone(v.x), weights: make([]float64, len(v.x)/t.Vector)}
	for i := range v.x {
		c.weights[i/t.Vector] += float64(v.weight(i)) / float64(t.Vector)
	}
	if t.Block > 0 {
		bytes := make([]byte, len(v.x)/int(t.Block))
		t.magnitudes(bytes, v.x, int(t.Block))
		t.divide(c.x, bytes)
		for i := range c.weights {
			s := float64(t.of[bytes[int64(i*t.Vector)/t.Block]])
			c.weights[i] *= float64(s * s)
		}
	}
	found := c.kmeans(t.Entries)
	for i, e := range found.entries { // no product exceeds the largest weight
		found.entries[i] = min(max(e, -1), 1)
	}
	found = c.ordered(found.entries) // by the elements that are stored: the search reads their order
	return &codebook{entries: found.entries, vectors: found}
}

// divide divides the blocks of x by their scales.
func (t *trainer) divide(x []float32, scales []byte) {
	for i := range x {
		x[i] = float32(x[i] * t.under[scales[int64(i)/t.Block]])
	}
}
