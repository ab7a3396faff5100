package palette

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func gaussianCloud(size, n int) *cloud {
	r := rand.New(rand.NewPCG(5, 6))
	c := &cloud{size: size, x: make([]float32, n*size), weights: make([]float64, n)}
	for i := range c.x {
		c.x[i] = float32(r.NormFloat64())
	}
	for i := range c.weights {
		c.weights[i] = 0.5 + r.Float64()
	}
	return c
}

// Entries are the nearest ones of all.
func TestNearestVector(t *testing.T) {
	for _, size := range []int{2, 4} {
		c := gaussianCloud(size, 500)
		v := newVectors(c.ordered(slices.Clone(c.x[:64*size])).entries, size)
		for i := range c.weights {
			x := c.x[i*size:][:size]
			least := math.Inf(1)
			for e := range v.first {
				least = min(least, v.distance(x, e))
			}
			if at, got := v.nearest(x); got != least || v.distance(x, at) != least {
				t.Fatalf("entry %d at distance %g, least %g", at, got, least)
			}
		}
	}
}

// errorOf is the weighted squared error for each element.
func (c *cloud) errorOf(v *vectors) (sum float64) {
	for i, w := range c.weights {
		_, d := v.nearest(c.x[i*c.size:])
		sum += w * d
	}
	return sum / float64(len(c.x))
}

// With as many bits for each weight, vectors have smaller errors than numbers, and no iteration of k-means makes them
// larger.
func TestKMeansOfVectors(t *testing.T) {
	last := math.Inf(1)
	for size, k := range map[int]int{1: 4, 2: 16, 4: 256} {
		c := gaussianCloud(size, 8192/size)
		seeds, v := c.seeds(k), c.kmeans(k)
		if got, was := c.errorOf(v), c.errorOf(seeds); got > 0.8*was {
			t.Errorf("vectors of %d: error %g, %g of the seeds", size, got, was)
		}
		if w := c.kmeans(k); !slices.Equal(w.entries, v.entries) {
			t.Error("k-means is not deterministic")
		}
	}
	for _, size := range []int{1, 2, 4} {
		c := gaussianCloud(size, 8192/size)
		e := c.errorOf(c.kmeans(1 << (2 * size)))
		if e > 0.97*last {
			t.Errorf("vectors of %d: error %g, %g of smaller ones", size, e, last)
		}
		last = e
	}
}
