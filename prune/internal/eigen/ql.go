package eigen

import (
	"math"
	"sync"
)

// A rotation mixes rows i and i+1 of the eigenvectors.
type rotation struct {
	i    int
	c, s float64
}

// maxSweeps is how often one eigenvalue may be iterated; two or three times are usual.
const maxSweeps = 60

// solve turns d into the eigenvalues, in no order, and returns the eigenvectors of the three
// diagonals as rows.
func (t *tridiagonal) solve(workers int) ([]float64, error) {
	n := t.n
	z := make([]float64, n*n)
	for i := range n {
		z[i*n+i] = 1
	}
	for l := range n {
		for sweeps := 0; ; sweeps++ {
			m := t.next(l)
			if m == l {
				break
			}
			if sweeps == maxSweeps {
				return nil, errDiverged
			}
			t.rotate(z, t.sweep(l, m), workers)
		}
	}
	return z, nil
}

// next is the end of the block from l on: the first row after which the subdiagonal
// is negligible.
func (t *tridiagonal) next(l int) int {
	for m := l; m < t.n-1; m++ {
		scale := math.Abs(t.d[m]) + math.Abs(t.d[m+1])
		if e := math.Abs(t.e[m]); e < tiny || e+scale == scale {
			return m
		}
	}
	return t.n - 1
}

// sweep is one implicit QL step with Wilkinson's shift on the block from l to m.
func (t *tridiagonal) sweep(l, m int) []rotation {
	d, e := t.d, t.e
	g := (d[l+1] - d[l]) / (2 * e[l])
	r := hypot(g, 1)
	g = d[m] - d[l] + e[l]/(g+math.Copysign(r, g))
	s, c, p := 1.0, 1.0, 0.0
	rs := make([]rotation, 0, m-l)
	for i := m - 1; i >= l; i-- {
		f, b := float64(s*e[i]), float64(c*e[i])
		r = hypot(f, g)
		e[i+1] = r
		if r == 0 { // the block is split
			d[i+1] -= p
			e[m] = 0
			return rs
		}
		s, c = f/r, g/r
		g = d[i+1] - p
		r = float64((d[i]-g)*s) + float64(2*c*b)
		p = float64(s * r)
		d[i+1] = g + p
		g = float64(c*r) - b
		rs = append(rs, rotation{i, c, s})
	}
	d[l] -= p
	e[l], e[m] = g, 0
	return rs
}

// hypot keeps its digits where squares would lose theirs. math.Hypot differs by processor.
func hypot(a, b float64) float64 {
	a, b = math.Abs(a), math.Abs(b)
	if a < b {
		a, b = b, a
	}
	if a == 0 {
		return 0
	}
	b /= a
	return a * math.Sqrt(1+float64(b*b))
}

// strip is how many columns rotations are applied to at a time: a strip of a thousand rows
// stays in a core's second-level cache.
const strip = 64

// rotate applies rs in their order. Columns have nothing to do with one another.
func (t *tridiagonal) rotate(z []float64, rs []rotation, workers int) {
	n := t.n
	// By columns: each element is computed by the same operations in the same order with any number of workers.
	parallel(workers, (n+strip-1)/strip, func(part int) {
		from := part * strip
		to := min(from+strip, n)
		for _, r := range rs {
			a, b := z[r.i*n+from:r.i*n+to], z[(r.i+1)*n+from:(r.i+1)*n+to]
			b = b[:len(a)]
			for k, x := range a {
				y := b[k]
				b[k] = float64(r.s*x) + float64(r.c*y)
				a[k] = float64(r.c*x) - float64(r.s*y)
			}
		}
	})
}

// parallel calls do for 0 to n-1 and waits.
func parallel(workers, n int, do func(i int)) {
	var wg sync.WaitGroup
	workers = max(1, min(workers, n))
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < n; i += workers {
				do(i)
			}
		}()
	}
	wg.Wait()
}
