package eigen

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// errDiverged is returned where the iteration does not converge: the matrix has NaN or infinities.
var errDiverged = errors.New("eigenvalues do not converge")

// Symmetric returns all eigenvalues of the n×n matrix a, largest first, and as rows the
// eigenvectors of the first k of them. It reads the lower triangle and overwrites it. The
// result does not depend on workers. Time is some 4·n³ operations, memory 2·n² numbers.
func Symmetric(a []float64, n, k, workers int) (values, vectors []float64, err error) {
	if n == 0 {
		return nil, nil, nil
	}
	// To tridiagonal form by Householder reflections, then implicit QL; the eigenvectors of the three diagonals are
	// then reflected back.
	exp := scale(a)
	t := reduce(a, n)
	z, err := t.solve(workers)
	if err != nil {
		return nil, nil, err
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(t.d[j], t.d[i]) })
	for i, from := range order {
		values = append(values, math.Ldexp(t.d[from], exp))
		if i < k {
			vectors = append(vectors, z[from*n:from*n+n]...)
		}
	}
	parallel(workers, k, func(i int) { t.restore(vectors[i*n : i*n+n]) })
	return values, vectors, nil
}

// scale brings the largest element of a to between a half and one, by a power of two, which
// it returns: so that squares neither overflow nor underflow.
func scale(a []float64) int {
	largest := 0.0
	for _, x := range a {
		largest = max(largest, math.Abs(x))
	}
	_, exp := math.Frexp(largest)
	for i, x := range a {
		a[i] = math.Ldexp(x, -exp)
	}
	return exp
}

// tiny is negligible compared with a largest element of one, as it is below the rounding error; relative accuracy of
// graded matrices is not required.
const tiny = 1e-17

// A tridiagonal is a matrix of three diagonals, and the reflections that made it.
type tridiagonal struct {
	n    int
	d, e []float64 // the diagonal; the subdiagonal
	a    []float64 // row i holds the vector of reflection i
	h    []float64 // half of its square; 0 where there was nothing to do
}

// reduce eliminates rows, the last one first: reflection i sets all but one
// element before the diagonal to zero.
func reduce(a []float64, n int) *tridiagonal {
	t := &tridiagonal{n: n, d: make([]float64, n), e: make([]float64, n), a: a, h: make([]float64, n)}
	p := make([]float64, n)
	for i := n - 1; i > 0; i-- {
		v := a[i*n : i*n+i]
		t.e[i-1], t.h[i] = reflection(v)
		if t.h[i] > 0 {
			t.reflect(v, p[:i], t.h[i])
		}
	}
	for i := range n {
		t.d[i] = a[i*n+i]
	}
	return t
}

// reflection makes of v the vector of a reflection that leaves one number of it, the last,
// and returns that and half of the vector's square.
func reflection(v []float64) (left, h float64) {
	last := len(v) - 1
	if sum := Dot(v[:last], v[:last]); sum > tiny*tiny {
		// Of the opposite sign, so that the subtraction below adds magnitudes and cancels no digits.
		left = -math.Copysign(math.Sqrt(sum+float64(v[last]*v[last])), v[last])
		v[last] -= left
		return left, Dot(v, v) / 2
	}
	return v[last], 0
}

// reflect applies two reflections to the leading part of a: with p = a·v/h
// and q = p - v·(v·p)/2h, it subtracts v·qᵀ + q·vᵀ.
func (t *tridiagonal) reflect(v, p []float64, h float64) {
	clear(p)
	for j := range v {
		row, sum := t.a[j*t.n:j*t.n+j], 0.0
		vj := v[j]
		for k, x := range row {
			sum += float64(x * v[k])
			p[k] += float64(x * vj)
		}
		p[j] += sum + float64(t.a[j*t.n+j]*vj)
	}
	for j := range p {
		p[j] /= h
	}
	half := Dot(v, p) / (2 * h)
	for j := range p {
		p[j] -= float64(half * v[j])
	}
	for j := range v {
		row := t.a[j*t.n : j*t.n+j+1]
		vj, qj := v[j], p[j]
		for k := range row {
			row[k] -= float64(vj*p[k]) + float64(qj*v[k])
		}
	}
}

// restore turns an eigenvector of the three diagonals into one of the matrix.
func (t *tridiagonal) restore(z []float64) {
	for i := 1; i < t.n; i++ {
		if t.h[i] == 0 {
			continue
		}
		v := t.a[i*t.n : i*t.n+i]
		s := Dot(v, z[:i]) / t.h[i]
		for k, x := range v {
			z[k] -= float64(s * x)
		}
	}
}

// Dot is the product of two vectors of one length. It adds in four sums, so that additions are independent.
func Dot(x, y []float64) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		a += float64(x[0] * y[0])
		b += float64(x[1] * y[1])
		c += float64(x[2] * y[2])
		d += float64(x[3] * y[3])
	}
	for i, v := range x {
		a += float64(v * y[i])
	}
	return (a + b) + (c + d)
}
