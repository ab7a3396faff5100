package metric

import (
	"context"
	"maps"
	"math"
	"slices"
)

// maxEmbeddings bounds the memory of embeddings of one model, in bytes.
const maxEmbeddings = 256 << 20

// centroids is the accuracy of the classifier by the nearest class centroid, leaving one out: a sample is compared with
// the means of the embeddings of all other samples of each class (scikit-learn's NearestCentroid with LeaveOneOut, on
// embeddings of length 1).
type centroids struct {
	vectors [2][][]float32 // of the reference and the model
	labels  []int64
	bytes   int
	paired  bool
}

func newNearestCentroid(options) (Scorer, error) { return &centroids{}, nil }

// Add implements Scorer.
func (c *centroids) Add(_ context.Context, b *Batch) error {
	labels, err := classLabels(b)
	if err != nil {
		return err
	}
	c.paired = b.Want != nil
	for side, out := range b.sides() {
		if out == nil {
			continue
		}
		vs, err := embeddings(b, out)
		if err != nil {
			return err
		}
		for _, v := range vs {
			short := make([]float32, len(v))
			for k, x := range v {
				short[k] = float32(x)
			}
			if len(c.vectors[side]) > 0 && len(c.vectors[side][0]) != len(v) {
				return inapplicable("embeddings have %d and %d numbers", len(c.vectors[side][0]), len(v))
			}
			c.vectors[side] = append(c.vectors[side], short)
			c.bytes += 4 * len(v)
		}
	}
	// Both models are counted.
	if c.bytes > 2*maxEmbeddings {
		return inapplicable("embeddings of %d samples take more than %d MiB; use fewer samples (--limit)", b.First+b.N,
			maxEmbeddings>>20)
	}
	for _, row := range labels {
		if len(row) != 1 {
			return inapplicable("%d labels of a sample; it needs one class", len(row))
		}
		c.labels = append(c.labels, row[0])
	}
	return nil
}

// Score implements Scorer.
func (c *centroids) Score(ctx context.Context) (Score, error) {
	after := c.hits(c.vectors[1])
	before := after
	if c.paired {
		before = c.hits(c.vectors[0])
	}
	m := &mean{paired: c.paired}
	for i := range after {
		m.addSample(before[i], after[i], 1)
	}
	return m.Score(ctx)
}

// hits is 1 for each sample that is nearest to the centroid of its class. Samples with a negative label are left out.
func (c *centroids) hits(vectors [][]float32) []float64 {
	sums, n := map[int64][]float64{}, map[int64]float64{}
	for i, v := range vectors {
		class := c.labels[i]
		if sums[class] == nil {
			sums[class] = make([]float64, len(v))
		}
		for k, x := range v {
			sums[class][k] += float64(x)
		}
		n[class]++
	}
	classes := slices.Sorted(maps.Keys(sums))
	var out []float64
	for i, v := range vectors {
		if c.labels[i] < 0 {
			continue
		}
		best, nearest := int64(noClass), math.Inf(1)
		for _, class := range classes {
			if d := distance(v, sums[class], n[class], class == c.labels[i]); class >= 0 && d < nearest {
				best, nearest = class, d
			}
		}
		hit := 0.0
		if best == c.labels[i] {
			hit = 1
		}
		out = append(out, hit)
	}
	return out
}

// distance is the squared Euclidean distance of v to the mean of n vectors, without v itself if it is one of them; +Inf
// to an empty set.
func distance(v []float32, sum []float64, n float64, own bool) float64 {
	without := 0.0
	if own {
		without = 1
	}
	if n == without {
		return math.Inf(1)
	}
	d := 0.0
	for k, x := range v {
		off := float64(x) - (sum[k]-without*float64(x))/(n-without)
		d += float64(off * off)
	}
	return d
}

// Close implements Scorer.
func (c *centroids) Close() error { return nil }
