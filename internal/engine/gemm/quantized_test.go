package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
)

// quantize replaces B by random quantized values, and returns the sample with the dense matrix.
func (s *sample) quantize(r *rand.Rand, bits int) *sample {
	block := 32
	if r.IntN(4) == 0 {
		block = max(s.K, 1)
	}
	q := &kernel.Quantized{K: s.K, N: s.N, Bits: bits, Block: block}
	q.Values, q.Scales, q.Zeros = make([]byte, q.ValueBytes()), gaussian(r, q.BlockValues()),
		make([]byte, q.BlockValues())
	for i := range q.Values {
		q.Values[i] = byte(r.Uint32())
	}
	for i := range q.Zeros {
		q.Zeros[i] = byte(r.IntN(1 << bits))
	}
	dense := Rows(make([]float32, s.K*s.N), s.N)
	panel := make([]float32, kernel.GemmPanel*s.K)
	for j := range q.Panels() {
		q.Decode(panel, j, 0, s.K)
		for k := range s.K {
			copy(dense.Data[k*s.N+j*kernel.GemmPanel:(k+1)*s.N], panel[k*kernel.GemmPanel:][:kernel.GemmPanel])
		}
	}
	other := *s
	other.B, s.B, s.Quantized = dense, Matrix[float32]{}, q
	return &other
}

// Products with quantized values are bit-identical to those with the dense matrix, of one row and of several, for any
// number of workers.
func TestQuantizedEqualsDense(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	shapes := []Shape{{1, 1, 0}, {1, 784, 512}, {300, 40, 300}, {13, 1100, 257}, {1, 100, 600}, {1, 1037, 300}}
	for range 40 {
		shapes = append(shapes, Shape{1 + r.IntN(8), 1 + r.IntN(90), r.IntN(600)})
	}
	for i, shape := range shapes {
		s := newSample(r, shape.M, shape.N, shape.K)
		if i%2 == 0 {
			s.A = Rows(gaussian(r, shape.M*shape.K), shape.K)
		}
		dense := s.quantize(r, 2<<(i%3))
		t.Run(fmt.Sprintf("%dx%dx%d", s.M, s.N, s.K), func(t *testing.T) {
			want := dense.run(workers(1), 0)
			dense.check(t, want)
			for _, w := range []workers{1, 2, 8} {
				if got := s.run(w, 0); !equalBits(got, want) {
					t.Errorf("%d workers: not bit-identical", w)
				}
			}
		})
	}
}

// Rows of int8 are multiplied in the same order for any number of rows and workers.
func TestInt8Rows(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 20 {
		shape := Shape{1 + r.IntN(40), 1 + r.IntN(300), 32 * (1 + r.IntN(20))}
		s := newSample(r, shape.M, shape.N, shape.K)
		s.Accumulate = false
		s.quantize(r, 2<<r.IntN(3))
		a := &kernel.Int8Rows{K: s.K, Block: s.Quantized.Int8Block()}
		values, each := a.Bytes(s.M)
		a.Values, a.Scales, a.Sums = make([]byte, values), make([]float32, each/4), make([]float32, each/4)
		for i := range s.M {
			a.Set(i, gaussian(r, s.K))
		}
		s.A, s.Int8 = Matrix[float32]{}, a
		product := slices.Clone(s.C)
		for i := range s.M {
			for j := 0; j < s.N; j += kernel.GemmPanel {
				var sums [kernel.GemmPanel]float32
				s.Quantized.Int8Row(sums[:], a, i, j/kernel.GemmPanel)
				copy(product[i*s.Stride+j:i*s.Stride+s.N], sums[:])
			}
			s.Epilogue.apply(product[i*s.Stride:], s.Stride, span{i, i + 1}, span{0, s.N})
		}
		for _, w := range []workers{1, 3} {
			if got := s.run(w, 0); !equalBits(got, product) {
				t.Errorf("%v, %d workers: not the products of single rows", shape, w)
			}
		}
	}
}
