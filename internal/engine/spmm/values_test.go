package spmm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// stored is a sparse weight of n×k elements in another type: their source and values, and the dense weight.
type stored struct {
	name   string
	source Source
	values kernel.SparseValues
	dense  gemm.Matrix[float32]
}

// inTypes draws weights whose rows (columns if transposed) are contiguous.
func inTypes(r *rand.Rand, n, k int, transposed bool) []stored {
	scales, ones, zeros, integers := make([]float32, n), make([]float32, n), make([]int32, n), make([]int32, n)
	for i := range scales {
		scales[i], ones[i], zeros[i] = float32(r.NormFloat64()), 1, int32(100+r.IntN(28))
	}
	layout := func() (m gemm.Matrix[byte]) {
		m = gemm.Rows(make([]byte, n*k), k)
		if transposed {
			m = gemm.Rows(m.Data, n).T()
		}
		return m
	}
	signed, unsigned := layout(), layout()
	halves := gemm.Matrix[uint16]{Data: make([]uint16, n*k), Row: signed.Row, Col: signed.Col}
	dense := make([][]float32, 3)
	for i := range dense {
		dense[i] = make([]float32, n*k)
	}
	for i := range n {
		for j := range k {
			v, at := int32(0), i*signed.Row+j*signed.Col
			if r.IntN(10) == 0 {
				v = int32(r.IntN(228) - 100)
			}
			signed.Data[at], unsigned.Data[at] = byte(v), byte(v+zeros[i])
			kernel.F16FromF32(halves.Data[at:at+1], []float32{float32(v) / 8})
			dense[0][at], dense[1][at], dense[2][at] = float32(v)*scales[i], float32(v)*scales[i], float32(v)/8
		}
	}
	of := func(data []float32) gemm.Matrix[float32] {
		return gemm.Matrix[float32]{Data: data, Row: signed.Row, Col: signed.Col}
	}
	return []stored{
		{"int8", differences(signed, k, true, integers), kernel.SparseValues{Type: kernel.SparseInt8, Scales: scales},
			of(dense[0])},
		{"uint8", differences(unsigned, k, false, zeros),
			kernel.SparseValues{Type: kernel.SparseHalf, Scales: scales}, of(dense[1])},
		{"float16", Halves(halves, k), kernel.SparseValues{Type: kernel.SparseHalf, Scales: ones}, of(dense[2])},
	}
}

// Products of weights in other types are bit-identical to those of the dense weights, also where they are stored row by
// row.
func TestProductsOfTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range []gemm.Shape{{M: 1, N: 300, K: 700}, {M: 40, N: 1000, K: 260}, {M: 5, N: 7, K: 3}} {
		for _, transposed := range []bool{false, true} {
			for _, w := range inTypes(r, s.N, s.K, transposed) {
				p := &sample{Shape: s, right: true, source: w.source, values: w.values,
					products: make([]gemm.FloatProduct, 1)}
				p.products[0] = gemm.FloatProduct{
					A: gemm.Rows(gaussian(r, s.M*s.K, 1), s.K), B: w.dense.T(), C: make([]float32, s.M*s.N),
					Stride:   s.N,
					Epilogue: gemm.Epilogue{Bias: gemm.Matrix[float32]{Data: gaussian(r, s.N, 1), Col: 1}},
				}
				name, want := fmt.Sprintf("%s, %v, transposed %v", w.name, s, transposed), p.dense()
				same(t, name, p.sparse(2, keep), want)
				c := make([]float32, s.M*s.N)
				got := p.sparse(2, func(f *gemm.FloatProduct) {
					f.C, f.Store = nil, func(row []float32, i, j int) { copy(c[i*s.N+j:], row) }
				})
				got[0].C = c
				same(t, name+", stored", got, want)
			}
		}
	}
}
