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

func BenchmarkQuantizeRows(b *testing.B) { benchmark(b, matrix(benchRows, benchCols, 0, false)) }

func BenchmarkQuantizeCols(b *testing.B) { benchmark(b, matrix(benchRows, benchCols, 1, false)) }

func BenchmarkQuantizeTransposed(b *testing.B) {
	benchmark(b, matrix(benchRows, benchCols, 0, true))
}

func BenchmarkFloat16(b *testing.B) {
	t, payload := benchWeight(matrix(benchRows, benchCols, -1, false))
	w := &narrowing{narrowType: &binary16}
	runRecipe(b, w.recipe(t, false, false), payload)
}

func benchmark(b *testing.B, c coding) {
	var payload []byte
	c.t, payload = benchWeight(c)
	c.s = scheme{symmetric: true}
	c.scales = []int64{c.g.scales()}
	runRecipe(b, c.recipe(), payload)
}

func benchWeight(c coding) (*ir.Tensor, []byte) {
	r := rand.New(rand.NewPCG(7, 8))
	x := make([]float32, c.g.elems())
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return tensorOf(ir.Float, c.shape, x), kernel.Bytes(x)
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
