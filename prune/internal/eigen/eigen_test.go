package eigen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// symmetric draws a matrix; some have equal eigenvalues, zeros and blocks.
func symmetric(t *rapid.T) (a []float64, n int) {
	n = rapid.IntRange(1, 24).Draw(t, "n")
	a = make([]float64, n*n)
	element := rapid.OneOf(rapid.Float64Range(-1, 1),
		rapid.SampledFrom([]float64{0, 0, 0, 1, -1, 1e-9, 1e-139, 1e-162, 5e-324}))
	for i := range n {
		for j := range i + 1 {
			a[i*n+j] = element.Draw(t, "x")
			a[j*n+i] = a[i*n+j]
		}
	}
	return a, n
}

// reference are gonum's eigenvalues, largest first. It panics on elements whose squares vanish,
// so it gets zeros in their place.
func reference(a []float64, n int) []float64 {
	a = slices.Clone(a)
	for i, x := range a {
		if math.Abs(x) < 1e-100 {
			a[i] = 0
		}
	}
	var e mat.EigenSym
	e.Factorize(mat.NewSymDense(n, a), false)
	values := e.Values(nil)
	slices.Reverse(values)
	return values
}

// Eigenvalues are gonum's, and eigenvectors are orthonormal and what they are called.
func TestEigenvaluesAndVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, n := symmetric(t)
		values, vectors, err := Symmetric(slices.Clone(a), n, n, 2)
		if err != nil {
			t.Fatal(err)
		}
		want := reference(a, n)
		const near = 1e-12
		for i := range n {
			if math.Abs(values[i]-want[i]) > 1e-8 { // gonum without vectors has errors of 1e-10 at times
				t.Fatalf("value %d: %v, want %v", i, values[i], want[i])
			}
			for j := range n {
				product := Dot(vectors[i*n:i*n+n], vectors[j*n:j*n+n])
				if i == j {
					product--
				}
				if math.Abs(product) > near*float64(n) {
					t.Fatalf("vectors %d and %d: %v", i, j, product)
				}
				if d := Dot(a[j*n:j*n+n], vectors[i*n:i*n+n]) - values[i]*vectors[i*n+j]; math.Abs(d) > near*float64(n) {
					t.Fatalf("row %d times vector %d is off by %v", j, i, d)
				}
			}
		}
	})
}

func TestSameBitsForAnyWorkers(t *testing.T) {
	const n = 150
	r := rand.New(rand.NewPCG(1, 2))
	a := make([]float64, n*n)
	for i := range a {
		a[i] = r.NormFloat64()
	}
	values, vectors, err := Symmetric(slices.Clone(a), n, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(vectors) != 20*n {
		t.Fatalf("%d numbers for 20 vectors of %d", len(vectors), n)
	}
	for _, workers := range []int{2, 7} {
		v, z, err := Symmetric(slices.Clone(a), n, 20, workers)
		if err != nil || !slices.Equal(v, values) || !slices.Equal(z, vectors) {
			t.Errorf("%d workers: other bits, %v", workers, err)
		}
	}
}

// Eigenvalues go with the matrix, however large or small it is.
func TestScale(t *testing.T) {
	want, _, err := Symmetric([]float64{2, 0, 0, 1, 3, 0, -1, 0.5, 4}, 3, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []float64{0x1p-1000, 0x1p1000} {
		got, _, err := Symmetric([]float64{2 * s, 0, 0, s, 3 * s, 0, -s, s / 2, 4 * s}, 3, 0, 1)
		for i := range want {
			if err != nil || got[i] != want[i]*s {
				t.Errorf("times %v: %v, want %v times that, %v", s, got, want, err)
			}
		}
	}
}

func TestNotANumber(t *testing.T) {
	if _, _, err := Symmetric([]float64{1, 0, 0, math.NaN(), 1, 0, 2, 3, 1}, 3, 3, 1); err == nil {
		t.Error("no error")
	}
}

func Example() {
	values, vectors, err := Symmetric([]float64{2, 1, 1, 2}, 2, 1, 1)
	fmt.Printf("%.3f %.3f %v\n", values, vectors[0]/vectors[1], err)
	// Output:
	// [3.000 1.000] 1.000 <nil>
}

func BenchmarkSymmetric768(b *testing.B) {
	const n = 768
	r := rand.New(rand.NewPCG(1, 2))
	a := make([]float64, n*n)
	for i := range a {
		a[i] = r.NormFloat64()
	}
	for b.Loop() {
		if _, _, err := Symmetric(slices.Clone(a), n, n/2, 2); err != nil {
			b.Fatal(err)
		}
	}
}
