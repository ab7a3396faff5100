package train

import (
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// bench runs an operator with one worker on inputs of n bytes.
func bench(b *testing.B, typ string, bytes int64, in []*ir.Array, attrs ...*ir.Attr) {
	b.Helper()
	c := optest.Case{Domain: domain, Type: typ, Version: 1, In: in, Attrs: attrs, Outputs: 2}
	row := optest.Row(Ops(), c)
	pool := op.NewPool(1)
	defer pool.Close()
	call, err := optest.NewCall(row, c, pool)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(bytes)
	for b.Loop() {
		if err := row.Run(call); err != nil {
			b.Fatal(err)
		}
	}
}

// Bytes are those read and written.
func BenchmarkUpdates(b *testing.B) {
	const n = 1 << 20
	w, g := values[float32](1, n), values[float32](2, n)
	zero := func() *ir.Array { return ir.NewArray(ir.Float, n) }
	hyper := optest.Array[float32](1e-4, 1, 1, 0.01)
	b.Run("SGD", func(b *testing.B) { bench(b, "SGDUpdate", 3*4*n, []*ir.Array{w, g, hyper}) })
	b.Run("momentum", func(b *testing.B) {
		bench(b, "SGDUpdate", 5*4*n, []*ir.Array{w, g, zero(), hyper}, ir.FloatAttr("momentum", 0.9))
	})
	b.Run("Adam", func(b *testing.B) { bench(b, "AdamUpdate", 7*4*n, []*ir.Array{w, g, zero(), zero(), hyper}) })
	b.Run("AdamKeepZeros", func(b *testing.B) {
		bench(b, "AdamUpdate", 7*4*n, []*ir.Array{w, g, zero(), zero(), hyper}, ir.IntAttr("keep_zeros", 1))
	})
	b.Run("Adam8", func(b *testing.B) {
		blocks := int64(n / quantizedBlock)
		bench(b, "Adam8Update", 16*n, []*ir.Array{w, g, ir.NewArray(ir.Uint8, n), ir.NewArray(ir.Uint8, n),
			ir.NewArray(ir.Float, blocks), ir.NewArray(ir.Float, blocks), hyper})
	})
	b.Run("Accumulate", func(b *testing.B) { bench(b, "AccumulateGrad", 3*4*n, []*ir.Array{w, g}) })
}

func BenchmarkLosses(b *testing.B) {
	const rows, classes = 128, 1000
	x, y, scale := values[float32](1, rows, classes), values[float32](2, rows, classes), optest.Scalar[float32](1)
	b.Run("CrossEntropy", func(b *testing.B) {
		bench(b, "CrossEntropyLoss", 8*rows*classes, []*ir.Array{x, labels(classes, rows), scale})
	})
	b.Run("Distill", func(b *testing.B) {
		bench(b, "DistillLoss", 12*rows*classes, []*ir.Array{x, y, scale}, ir.FloatAttr("temperature", 4))
	})
	b.Run("MeanSquared", func(b *testing.B) { bench(b, "MeanSquaredLoss", 12*rows*classes, []*ir.Array{x, y, scale}) })
}

// Bytes are those of the elements and of the quantized values.
func BenchmarkStoredActivations(b *testing.B) {
	const n = 1 << 20
	x, step := values[float32](1, n), step(1)
	b.Run("Quantize", func(b *testing.B) { bench(b, "QuantizeActivation", 5*n, []*ir.Array{x, step}) })
	stored, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: "QuantizeActivation", Version: 1,
		In: []*ir.Array{x, step}, Outputs: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Dequantize", func(b *testing.B) { bench(b, "DequantizeActivation", 5*n, stored, ir.IntsAttr("shape", n)) })
}
