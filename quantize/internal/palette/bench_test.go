package palette

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// BenchmarkPalette measures input bytes per second of one weight with 16 entries.
func BenchmarkPalette(b *testing.B) {
	x, r := make([]float32, 4<<20), rand.New(rand.NewPCG(1, 0))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	t := &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2048, 2048}}}
	e := &encoding{Layout: newLayout(t.Shape, -1, 0, 8, 16, 1), weight: t}
	b.SetBytes(4 * int64(len(x)))
	for b.Loop() {
		if err := e.Recipe().Run(b.Context(), []io.ReaderAt{bytes.NewReader(kernel.Bytes(x))},
			[]io.Writer{io.Discard, io.Discard, io.Discard}); err != nil {
			b.Fatal(err)
		}
	}
}
