package ir

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Reads of any length are those of the tensor, also across the end of what was read ahead.
func TestReadAheadReadsTheTensor(t *testing.T) {
	r, data := rand.New(rand.NewPCG(1, 2)), make([]byte, 3*aheadBytes+5)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for _, step := range []int{1000, 1001, aheadBytes - 1, aheadBytes} {
		w := &readAhead{in: bytes.NewReader(data), size: int64(len(data))}
		for off := 0; off < len(data); off += step {
			b := make([]byte, min(step, len(data)-off))
			if err := w.read(b, int64(off)); err != nil || !bytes.Equal(b, data[off:off+len(b)]) {
				t.Errorf("%d bytes at %d differ (%v)", len(b), off, err)
			}
		}
	}
}

// BenchmarkPickedColumns reads a matrix of which every second column is pruned: short runs.
func BenchmarkPickedColumns(b *testing.B) {
	const rows, cols = 512, 8192
	var indices []int64
	for i := range int64(cols / 2) {
		indices = append(indices, 2*i)
	}
	p := &indexSelect{bytes.NewReader(make([]byte, rows*cols*4)), rows * cols * 4, 4, cols, indices}
	buf := make([]byte, CopyBuffer)
	b.SetBytes(rows * cols * 4 / 2)
	for b.Loop() {
		for off := int64(0); off < rows*cols*2; off += CopyBuffer {
			if _, err := p.ReadAt(buf, off); err != nil {
				b.Fatal(err)
			}
		}
	}
}
