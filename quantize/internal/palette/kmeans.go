package palette

import (
	"cmp"
	"math"
	"slices"
)

// A point is a value with a weight: one or several elements.
type point struct{ value, weight float64 }

// kmeans returns the k centroids, ascending, that minimize the weighted squared error of points, which are ascending.
// It is exact: dynamic programming over the first point of each cluster, which grows with the last one, in O(k·n·log n)
// (Wang and Song, Ckmeans.1d.dp, 2011).
func kmeans(points []point, k int) []float64 {
	c := newCosts(points)
	if len(points) <= k {
		return c.few(k)
	}
	n := len(points)
	last, next := make([]float64, n+1), make([]float64, n+1)
	for j := range last {
		last[j] = c.of(0, j)
	}
	starts := make([][]int32, k) // of the last cluster, by the number of clusters and the end
	starts[0] = make([]int32, n+1)
	for q := 1; q < k; q++ {
		starts[q] = make([]int32, n+1)
		c.layer(last, next, starts[q-1], starts[q], q, n, q-1, n)
		last, next = next, last
	}
	centers := make([]float64, k)
	for q, end := k-1, n; q >= 0; q-- {
		start := 0
		if q > 0 {
			start = int(starts[q][end])
		}
		centers[q] = c.mean(start, end)
		end = start
	}
	return centers
}

// costs are sums of the first points: of weights, values and squares.
type costs struct {
	points             []point
	weight, sum, power []float64
}

func newCosts(points []point) *costs {
	c := &costs{points: points, weight: make([]float64, len(points)+1), sum: make([]float64, len(points)+1),
		power: make([]float64, len(points)+1)}
	for i, p := range points {
		first := float64(p.weight * p.value)
		c.weight[i+1] = c.weight[i] + p.weight
		c.sum[i+1] = c.sum[i] + first
		c.power[i+1] = c.power[i] + float64(first*p.value)
	}
	return c
}

// of is the squared error of points i to j around their mean.
func (c *costs) of(i, j int) float64 {
	w := c.weight[j] - c.weight[i]
	if w <= 0 {
		return 0
	}
	s := c.sum[j] - c.sum[i]
	// Σw·x² - (Σw·x)²/Σw in constant time from sums of the first points; float64, as the difference cancels.
	return c.power[j] - c.power[i] - s*s/w
}

// mean is that of points i to j.
func (c *costs) mean(i, j int) float64 {
	if w := c.weight[j] - c.weight[i]; w > 0 {
		return (c.sum[j] - c.sum[i]) / w
	}
	return c.points[i].value
}

// few are centroids of at most k points: their values, the last one repeated.
func (c *costs) few(k int) []float64 {
	centers := make([]float64, k)
	for i := range centers {
		if len(c.points) > 0 {
			centers[i] = c.points[min(i, len(c.points)-1)].value
		}
	}
	return centers
}

// layer computes next, the least errors of q+1 clusters of the first points, from last, those of q clusters, for ends
// from lo to hi by divide and conquer: the first point of the last cluster is between from and to, and not before that
// of q clusters.
func (c *costs) layer(last, next []float64, before, start []int32, lo, hi, from, to int) {
	if lo > hi {
		return
	}
	mid := (lo + hi) / 2
	least, at := math.Inf(1), min(max(from, int(before[mid])), to)
	for i := at; i <= min(to, mid); i++ {
		// Of equal errors the first one, so that the result does not depend on the order of the search.
		if e := last[i] + c.of(i, mid); e < least {
			least, at = e, i
		}
	}
	next[mid], start[mid] = least, int32(at)
	// The first point of the last cluster grows with the end: the halves search on either side of it, and all ends of
	// a layer together take n·log n steps.
	c.layer(last, next, before, start, lo, mid-1, from, at)
	c.layer(last, next, before, start, mid+1, hi, at, to)
}

// pointsOf are values as points: each distinct one, or those of equal intervals from -1 to 1 where there are more.
func pointsOf(v values, intervals int) []point {
	// Distinct values where they are few: the clusters are exact then. Sums of intervals otherwise, as the time
	// depends on the number of points.
	if len(v.x) > intervals {
		return binnedPoints(v, intervals)
	}
	points := make([]point, len(v.x))
	for i, x := range v.x {
		points[i] = point{float64(x), float64(v.weight(i))}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.value, b.value) })
	n := 0
	for _, p := range points {
		if n > 0 && points[n-1].value == p.value {
			points[n-1].weight += p.weight
			continue
		}
		points[n] = p
		n++
	}
	return points[:n]
}

// binnedPoints are the means of values in each of equal intervals.
func binnedPoints(v values, intervals int) []point {
	sums := make([]point, intervals)
	for i, x := range v.x {
		s, w := &sums[cell(x, intervals)], float64(v.weight(i))
		s.value += float64(float64(x) * w)
		s.weight += w
	}
	points := sums[:0]
	for _, s := range sums {
		if s.weight > 0 {
			points = append(points, point{s.value / s.weight, s.weight})
		}
	}
	return points
}

// cell is the one of n equal intervals from -1 to 1 that v is in.
func cell(v float32, n int) int { return min(max(int(float32(v+1)*float32(n)/2), 0), n-1) }
