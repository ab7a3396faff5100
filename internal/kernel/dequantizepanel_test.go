package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzDequantizePanel(f *testing.F) {
	for i := range uint8(9) {
		f.Add(uint64(i), i, i)
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, size uint8) {
		r := rand.New(rand.NewPCG(seed, 4))
		bits := []int{2, 4, 8}[size%3]
		codes := make([]byte, int(rows)*2*bits)
		for i := range codes {
			codes[i] = byte(r.Uint32())
		}
		scale, zero := random(r, 16), random(r, 16)
		got, want := make([]float32, int(rows)*16), make([]float32, int(rows)*16)
		DequantizePanel(got, codes, bits, scale, zero)
		dequantizePanelGo(want, codes, bits, scale, zero)
		if !slices.Equal(got, want) {
			t.Errorf("%d rows of %d bits: got %v, want %v", rows, bits, got, want)
		}
	})
}
