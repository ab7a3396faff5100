package palette

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// errorOf is the weighted squared error of points with the nearest of centers.
func errorOf(points []point, centers []float64) (sum float64) {
	for _, p := range points {
		least := math.Inf(1)
		for _, c := range centers {
			least = min(least, (p.value-c)*(p.value-c))
		}
		sum += p.weight * least
	}
	return sum
}

// leastError is the least error of k clusters of points, by trying all.
func leastError(points []point, k int) float64 {
	c := newCosts(points)
	if k == 1 || len(points) <= k {
		return errorOf(points, []float64{c.mean(0, len(points))}) * float64(min(1, max(0, len(points)-k)))
	}
	least := math.Inf(1)
	for last := k - 1; last < len(points); last++ {
		least = min(least, leastError(points[:last], k-1)+c.of(last, len(points)))
	}
	return least
}

// The clusters have the least possible error.
func TestKMeansIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for n := 1; n < 13; n++ {
		for k := 2; k < 5; k++ {
			points := make([]point, n)
			for i := range points {
				points[i] = point{math.Round(r.NormFloat64()*8) / 8, float64(1 + r.IntN(3))}
			}
			slices.SortFunc(points, func(a, b point) int { return int(math.Copysign(1, a.value-b.value)) })
			got, want := errorOf(points, kmeans(points, k)), leastError(points, k)
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%v: %d centers with error %g, want %g", points, k, got, want)
			}
		}
	}
}

// Values are assigned to the nearest entry, also beyond the table of intervals.
func TestNearestEntry(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for _, k := range []int{4, 16, 256} {
		entries := make([]float32, k)
		for i := range entries {
			entries[i] = float32(r.NormFloat64())
		}
		slices.Sort(entries)
		for _, scales := range []*scaler{nil, scaleTable()} {
			c := newCodebook(entries, scales)
			for range 1000 {
				v := float32(r.NormFloat64())
				got := math.Abs(float64(v - entries[c.nearest(v)]))
				for _, e := range entries {
					if math.Abs(float64(v-e)) < got-1e-6 {
						t.Fatalf("%g of %d entries is nearer to %g than %g", e, k, v, entries[c.nearest(v)])
					}
				}
			}
		}
	}
}
