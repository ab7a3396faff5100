package gemm

import (
	"fmt"
	"math/rand/v2"
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
	q.Values, q.Scales, q.Zeros = make([]byte, q.ValueBytes()), gaussian(r, q.BlockValues()), make([]byte, q.BlockValues())
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

// Products with quantized values are bit-identical to those with the dense matrix, of one row and of several, for any number of workers.
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
