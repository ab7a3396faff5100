package packedweight

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// packedElements returns n elements of a table, dense and packed, with scales of blocks.
func packedElements(entries, n, block int) ([]float32, *Scaled) {
	r := rand.New(rand.NewPCG(1, uint64(entries)))
	table, steps := make([]float32, entries), make([]float32, 256)
	for i := range table {
		table[i] = float32(r.NormFloat64())
	}
	for i := range steps {
		steps[i] = float32(r.NormFloat64())
	}
	at, scaleAt := make([]int64, n), make([]int64, (n+block-1)/block)
	for i := range scaleAt {
		scaleAt[i] = int64(r.IntN(256))
	}
	dense := make([]float32, n)
	for i := range at {
		at[i] = int64(r.IntN(entries))
		dense[i] = table[at[i]] * steps[scaleAt[i/block]]
	}
	packed := &Scaled{Values: NewLookup(ir.Float, entries, table, n, at),
		Scales: NewLookup(ir.Float, 256, steps, len(scaleAt), scaleAt), Block: block}
	if packed.Scales == nil { // a few scales, which a table would make larger
		for _, i := range scaleAt {
			packed.Floats = append(packed.Floats, steps[i])
		}
	}
	return dense, packed
}

// Every part of packed elements is that of the dense ones, along rows and columns.
func FuzzDecode(f *testing.F) {
	for _, entries := range []uint16{2, 16, 17, 256, 300} {
		f.Add(entries, uint8(8), uint16(0), uint16(100), uint8(7), uint8(16))
		f.Add(entries, uint8(7), uint16(3), uint16(33), uint8(16), uint8(29))
		f.Add(entries, uint8(255), uint16(5), uint16(180), uint8(20), uint8(16))
	}
	f.Fuzz(func(t *testing.T, entries uint16, block uint8, at, stride uint16, rows, cols uint8) {
		const n = 1 << 15
		dense, packed := packedElements(max(2, int(entries)%2000), n, max(1, int(block)))
		p := op.Part{At: int(at) % n, Stride: int(stride) % 1000, Rows: int(rows) % 32, Cols: int(cols), DstCol: 1,
			DstRow: int(cols)}
		if p.Rows == 0 || p.Cols == 0 || p.At+(p.Rows-1)*p.Stride+p.Cols > n {
			return
		}
		for _, q := range []op.Part{p, {At: p.At, Stride: p.Stride, Rows: p.Rows, Cols: p.Cols, DstRow: 1,
			DstCol: p.Rows}} {
			dst := make([]float32, p.Rows*p.Cols)
			packed.Decode(dst, q)
			for i := range p.Rows {
				for j := range p.Cols {
					if got, want := dst[i*q.DstRow+j*q.DstCol], dense[p.At+i*p.Stride+j]; got != want {
						t.Fatalf("element %d of row %d is %v, want %v", j, i, got, want)
					}
				}
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	_, packed := packedElements(16, 384*384, 8)
	dst := make([]float32, 256*16)
	b.SetBytes(4 * 256 * 16)
	for b.Loop() {
		packed.Decode(dst, op.Part{At: 32, Stride: 384, Rows: 256, Cols: 16, DstRow: 16, DstCol: 1})
	}
}
