package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// lookupOf are n random elements with blocks of scales: floats, or entries of a table.
func lookupOf(r *rand.Rand, bits, n, block int, floats bool) *Lookup {
	l := &Lookup{Bits: bits, Indices: make([]byte, (n*bits+7)/8), Table: gaussian(r, 1<<bits), Block: block}
	for i := range l.Indices {
		l.Indices[i] = byte(r.Uint32())
	}
	if block == 0 {
		return l
	}
	blocks := (n + block - 1) / block
	if floats {
		l.Scales = gaussian(r, blocks)
		return l
	}
	l.Scales, l.Blocks = gaussian(r, 256), make([]byte, blocks)
	for i := range l.Blocks {
		l.Blocks[i] = byte(r.Uint32())
	}
	return l
}

// element is element i by definition.
func (l *Lookup) element(i int) float32 {
	index := l.Indices[i*l.Bits/8]
	if l.Bits == 4 {
		index = index >> (i % 2 * 4) & 15
	}
	switch {
	case l.Block == 0:
		return l.Table[index]
	case l.Blocks == nil:
		return l.Table[index] * l.Scales[i/l.Block]
	}
	return l.Table[index] * l.Scales[l.Blocks[i/l.Block]]
}

func FuzzLookup(f *testing.F) {
	for seed := range uint64(48) {
		f.Add(seed, uint8(seed), uint8(seed*5), uint8(seed%7*8), uint8(seed*3), uint8(seed%5*8), uint8(8*seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind, block, at, stride, rows, cols uint8) {
		size, more := int(block)%40, 0
		if block%2 == 0 {
			size = 8 << (block % 4)
		}
		if kind%3 == 0 {
			size = 0
		}
		if rows %= 20; rows == 0 || cols == 0 {
			return
		}
		if kind&8 != 0 {
			more = int(kind) % 3 // between rows of dst
		}
		n := int(at) + (int(rows)-1)*int(stride) + int(cols)
		l := lookupOf(rand.New(rand.NewPCG(seed, 0)), 4+int(kind)%2*4, n, size, kind%3 == 1)
		row := int(cols) + more
		got, check := guarded[float32]((int(rows)-1)*row+int(cols), 7)
		l.Decode(got, row, int(at), int(stride), int(rows), int(cols))
		check(t)
		want := make([]float32, cols)
		for i := range int(rows) {
			first := int(at) + i*int(stride)
			for j := range want {
				want[j] = l.element(first + j)
			}
			wantBits(t, got[i*row:][:cols], want)
			l.decodeGo(got[i*row:][:cols], first)
			wantBits(t, got[i*row:][:cols], want)
			for _, v := range got[i*row+int(cols) : min(len(got), (i+1)*row)] {
				if v != 7 {
					t.Fatal("an element between rows was written")
				}
			}
		}
	})
}

// BenchmarkLookup measures output bytes per second of panels of 16 columns, as products decode them, and of the plain
// loops.
func BenchmarkLookup(b *testing.B) {
	const rows, stride = 256, 384
	for _, bits := range []int{4, 8} {
		l := lookupOf(rand.New(rand.NewPCG(1, 0)), bits, rows*stride, 8, false)
		dst := make([]float32, rows*16)
		b.Run(fmt.Sprint(bits, " bits"), func(b *testing.B) {
			b.SetBytes(4 * rows * 16)
			for b.Loop() {
				l.Decode(dst, 16, 32, stride, rows, 16)
			}
		})
		b.Run(fmt.Sprint(bits, " bits, Go"), func(b *testing.B) {
			b.SetBytes(4 * rows * 16)
			for b.Loop() {
				for i := range rows {
					l.decodeGo(dst[i*16:][:16], 32+i*stride)
				}
			}
		})
	}
}
