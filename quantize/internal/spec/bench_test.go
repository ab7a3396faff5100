package spec

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// A layer of the BERT-base shape, read from memory: 3072 × 768 float32.
const benchRows, benchCols = 3072, 768

func BenchmarkQuantizeRows(b *testing.B) {
	benchmark(b, matrixEncoding(benchRows, benchCols, 0, false))
}

func BenchmarkQuantizeCols(b *testing.B) {
	benchmark(b, matrixEncoding(benchRows, benchCols, 1, false))
}

func BenchmarkQuantizeTransposed(b *testing.B) {
	benchmark(b, matrixEncoding(benchRows, benchCols, 0, true))
}

func benchmark(b *testing.B, c PerChannel) {
	var payload []byte
	c.Weight, payload = benchWeight(c)
	c.Spec = QuantSpec{Symmetric: true}
	c.ScaleShape = []int64{c.Layout.NumScales()}
	quanttest.RunRecipe(b, c.Recipe(), payload)
}

func benchWeight(c PerChannel) (*ir.Tensor, []byte) {
	r := rand.New(rand.NewPCG(7, 8))
	x := make([]float32, c.Layout.Elems())
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return quanttest.TensorOf(ir.Float, c.Shape, x), kernel.Bytes(x)
}

func BenchmarkBlockwise(b *testing.B) {
	for _, c := range []struct {
		name                    string
		columnMajor, transposed bool
	}{{"row-major", false, false}, {"transposed", true, true}, {"column-major", true, false}} {
		b.Run(c.name, func(b *testing.B) {
			k := &BlockLayout{Rows: benchRows, Cols: benchCols, Bits: 4, DType: ir.Uint4, Spec: solve.Spec{High: 15, Block: 32}}
			k.ColumnMajor, k.Transposed = c.columnMajor, c.transposed
			k.Rounder = func(q *solve.Quantized, w []float32, _, _ int) error {
				solve.MSE(q, w)
				return nil
			}
			e := Blockwise{Shape: []int64{benchRows, benchCols}, Layout: k}
			var payload []byte
			e.Weight, payload = benchWeight(PerChannel{Shape: e.Shape, Layout: PerTensorLayout(benchRows * benchCols)})
			quanttest.RunRecipe(b, e.Recipe(), payload)
		})
	}
}
