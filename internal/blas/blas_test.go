package blas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/blas/testblas"
	lapack "gonum.org/v1/gonum/lapack/gonum"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// with is an implementation with the given number of workers that leaves no product to gonum.
func with(t testing.TB, workers int) Implementation {
	p := op.NewPool(workers)
	t.Cleanup(p.Close)
	impl := New(p)
	impl.small = 0
	return impl
}

// gonum's own tests of these functions: all flags, strides and factors, and panics.
func TestGonumsTests(t *testing.T) {
	impl := New(op.NewPool(1))
	testblas.TestDgemm(t, impl)
	testblas.DsyrkTest(t, impl)
	testblas.DtrsmTest(t, impl)
}

func random(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// A call is one function with its flags.
type call struct {
	name string
	run  func(blas.Float64Level3, []float64, []float64, []float64)
}

const lda, ldb, ldc = 107, 113, 109

// calls are all functions with all combinations of flags, for one shape.
func calls(m, n, k int) []call {
	var cs []call
	transposes, triangles := []blas.Transpose{blas.NoTrans, blas.Trans}, []blas.Uplo{blas.Upper, blas.Lower}
	for _, tA := range transposes {
		for _, tB := range transposes {
			cs = append(cs, call{fmt.Sprintf("Dgemm %c%c %d×%d×%d", tA, tB, m, n, k), func(b blas.Float64Level3, x, y, z []float64) {
				b.Dgemm(tA, tB, m, n, k, 1.5, x, lda, y, ldb, -0.5, z, ldc)
			}})
		}
		for _, ul := range triangles {
			cs = append(cs, call{fmt.Sprintf("Dsyrk %c%c %d×%d", ul, tA, n, k), func(b blas.Float64Level3, x, _, z []float64) {
				b.Dsyrk(ul, tA, n, k, -1, x, lda, 1, z, ldc)
			}})
			for _, side := range []blas.Side{blas.Left, blas.Right} {
				for _, d := range []blas.Diag{blas.Unit, blas.NonUnit} {
					cs = append(cs, call{fmt.Sprintf("Dtrsm %c%c%c%c %d×%d", side, ul, tA, d, m, n), func(b blas.Float64Level3, x, _, z []float64) {
						b.Dtrsm(side, ul, tA, d, m, n, 2, x, lda, z, ldc)
					}})
				}
			}
		}
	}
	return cs
}

// operands are matrices of up to 100×100, the first with a dominant diagonal for well-conditioned triangular solves.
func operands(r *rand.Rand) (x, y, z []float64) {
	x, y, z = random(r, 100*lda), random(r, 100*ldb), random(r, 100*ldc)
	for i := range x {
		x[i] /= 10
	}
	for i := range 100 {
		x[i*lda+i] = 2 + r.Float64()
	}
	return x, y, z
}

// Results equal gonum's up to rounding, and elements outside of the results are unchanged.
func TestEqualsGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	impl := with(t, 2)
	for range 12 {
		for _, c := range calls(1+r.IntN(100), 1+r.IntN(100), 1+r.IntN(100)) {
			x, y, z := operands(r)
			got, want := append([]float64(nil), z...), append([]float64(nil), z...)
			c.run(impl, x, y, got)
			c.run(gonum.Implementation{}, x, y, want)
			for i := range got {
				if math.Abs(got[i]-want[i]) > 1e-10*(1+math.Abs(want[i])) {
					t.Fatalf("%s: element %d is %v, gonum's %v", c.name, i, got[i], want[i])
				}
			}
		}
	}
}

// Results are bit-identical for any number of workers.
func TestWorkersChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	few, many := with(t, 1), with(t, 7)
	for _, c := range calls(97, 91, 100) {
		x, y, z := operands(r)
		other := append([]float64(nil), z...)
		c.run(few, x, y, z)
		c.run(many, x, y, other)
		for i := range z {
			if math.Float64bits(z[i]) != math.Float64bits(other[i]) {
				t.Fatalf("%s: element %d is %v with one worker, %v with seven", c.name, i, z[i], other[i])
			}
		}
	}
}

// UᵀU equals the factored matrix. Up to the order that is factored by panels, U is bit-identical to that of gonum's Dpotrf.
func TestCholesky(t *testing.T) {
	for _, n := range []int{1, 63, 200, panels, 520} {
		r := rand.New(rand.NewPCG(5, 6))
		x, h := random(r, n*n), make([]float64, n*n)
		gonum.Implementation{}.Dsyrk(blas.Upper, blas.Trans, n, n, 1, x, n, 0, h, n)
		f := slices.Clone(h)
		if !Cholesky(n, f, n) {
			t.Fatalf("a positive definite matrix of order %d has no factor", n)
		}
		if far := distance(f, h, n); far > 1e-9 {
			t.Errorf("UᵀU of order %d is %v off", n, far)
		}
		if n > panels {
			continue
		}
		blas64.Use(New(workers()))
		lapack.Implementation{}.Dpotrf(blas.Upper, n, h, n)
		if !slices.Equal(f, h) {
			t.Errorf("U of order %d is not bit-identical to gonum's", n)
		}
	}
}

// distance is the largest error of UᵀU in the upper triangle.
func distance(u, h []float64, n int) (most float64) {
	for i := range n {
		row := append([]float64(nil), h[i*n:(i+1)*n]...)
		for k := range i + 1 {
			for j := i; j < n; j++ {
				row[j] -= u[k*n+i] * u[k*n+j]
			}
		}
		for _, x := range row[i:] {
			most = max(most, math.Abs(x))
		}
	}
	return most
}

func TestCholeskyOfIndefiniteMatrix(t *testing.T) {
	const n = 300
	h := make([]float64, n*n)
	for i := range n {
		h[i*n+i] = 1
	}
	h[280*n+280] = -1
	if Cholesky(n, h, n) {
		t.Error("an indefinite matrix has a factor")
	}
}

func BenchmarkCholesky(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{768, 3072} {
		h := random(r, n*n)
		for i := range n {
			h[i*n+i] = 4 * float64(n)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				f := append([]float64(nil), h...)
				Cholesky(n, f, n)
			}
			b.ReportMetric(float64(n)*float64(n)*float64(n)/3*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
