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
	element := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{0, 0, 0, 1, -1, 1e-9}))
	for i := range n {
		for j := range i + 1 {
			a[i*n+j] = element.Draw(t, "x")
			a[j*n+i] = a[i*n+j]
		}
	}
	return a, n
}

// Eigenvalues are gonum's, and eigenvectors are orthonormal and what they are called.
func TestEigenvaluesAndVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, n := symmetric(t)
		values, vectors, err := Symmetric(slices.Clone(a), n, n, 2)
		if err != nil {
			t.Fatal(err)
		}
		var other mat.EigenSym
		other.Factorize(mat.NewSymDense(n, slices.Clone(a)), false)
		want := other.Values(nil)
		slices.Reverse(want)
		const near = 1e-12
		for i := range n {
			if math.Abs(values[i]-want[i]) > near*float64(n) {
				t.Fatalf("value %d: %v, want %v", i, values[i], want[i])
			}
			for j := range n {
				product := dot(vectors[i*n:i*n+n], vectors[j*n:j*n+n])
				if i == j {
					product--
				}
				if math.Abs(product) > near*float64(n) {
					t.Fatalf("vectors %d and %d: %v", i, j, product)
				}
				if d := dot(a[j*n:j*n+n], vectors[i*n:i*n+n]) - values[i]*vectors[i*n+j]; math.Abs(d) > near*float64(n) {
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
