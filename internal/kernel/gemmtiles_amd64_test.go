//go:build !noasm

package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Sums of AMX and of VPDPBUSD are those of the twin, also if the last tiles are not full and the last elements no whole
// step.
func FuzzGemmTiles(f *testing.F) {
	if !hasAMX {
		f.Skip("the CPU has no AMX")
	}
	for i := range uint8(40) {
		f.Add(uint64(i), i*7, i*31, uint16(i)*13)
	}
	f.Fuzz(func(t *testing.T, seed uint64, m, n uint8, k uint16) {
		p := newIntProduct(rand.New(rand.NewPCG(seed, 0)), 1+int(m%100), 1+int(n), amxBytes+int(k%600))
		if seed%3 == 0 {
			p.row = slices.Clone(p.c[:p.n])
		}
		for _, multiply := range []func(*gemmInt){(*gemmInt).byTiles, (*gemmInt).byBytes} {
			g, left := p.kernel(1)
			multiply(g)
			p.check(t, g, left)
		}
	})
}
