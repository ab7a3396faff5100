package float

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A layer of the BERT-base shape, read from memory: 3072 × 768 float32.
func BenchmarkFloat16(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	x := make([]float32, 3072*768)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	w := &Converter{HalfType: &Binary16}
	quanttest.RunRecipe(b, w.recipe(quanttest.TensorOf(ir.Float, []int64{3072, 768}, x), 0, false), kernel.Bytes(x))
}
