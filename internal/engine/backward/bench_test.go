package backward

import (
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// Activations and their masks with one worker; bytes are those of elements that are read and written.
func BenchmarkActivations(b *testing.B) {
	const n = 1 << 20
	x, dy, mask := gaussian(1, n), gaussian(2, n), ir.NewArray(ir.Uint8, n/8)
	for i := range mask.Data {
		mask.Data[i] = byte(i * 37)
	}
	pool := op.NewPool(1)
	defer pool.Close()
	for _, c := range []struct {
		trial
		bytes int64
	}{
		{trial{"SwishGrad", nil, []*ir.Array{x, dy}, 1}, 12 * n},
		{trial{"MishGrad", nil, []*ir.Array{x, dy}, 1}, 12 * n},
		{trial{"HardSwishGrad", nil, []*ir.Array{x, dy}, 1}, 12 * n},
		{trial{"ActivationMask", nil, []*ir.Array{x, ir.ArrayOf([]float32{0}), nil}, 1}, 4*n + n/8},
		{trial{"MaskedGrad", nil, []*ir.Array{dy, mask}, 1}, 8*n + n/8},
	} {
		b.Run(c.typ, func(b *testing.B) {
			row := optest.Row(Ops(), c.node(1))
			call, err := optest.NewCall(row, c.node(1), pool)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(c.bytes)
			for b.Loop() {
				if err := row.Run(call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
