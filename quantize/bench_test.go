package quantize

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
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

func benchmark(b *testing.B, c Encoding) {
	var payload []byte
	c.Weight, payload = benchWeight(c)
	c.Spec = QuantSpec{Symmetric: true}
	c.ScaleShape = []int64{c.Layout.NumScales()}
	runRecipe(b, c.Recipe(), payload)
}

func benchWeight(c Encoding) (*ir.Tensor, []byte) {
	r := rand.New(rand.NewPCG(7, 8))
	x := make([]float32, c.Layout.Elems())
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return tensorOf(ir.Float, c.Shape, x), kernel.Bytes(x)
}

func runRecipe(b *testing.B, r *ir.Recipe, payload []byte) {
	b.SetBytes(int64(len(payload)))
	in := []io.ReaderAt{bytes.NewReader(payload)}
	out := make([]io.Writer, len(r.Out))
	for i := range out {
		out[i] = io.Discard
	}
	for b.Loop() {
		if err := r.Run(context.Background(), in, out); err != nil {
			b.Fatal(err)
		}
	}
}
