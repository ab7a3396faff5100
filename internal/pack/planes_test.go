package pack

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Planes of any number of elements have the bytes in their places, and are merged to the same elements.
func TestPlanes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, f := range []form{{0, 1, nibbles}, {0, 2, planes}, {0, 2, rotatedPlanes}, {0, 4, planes}, {0, 4, rotatedPlanes},
		{0, 8, planes}, {0, 8, rotatedPlanes}} {
		for _, n := range []int{1, 7, 8, 9, 40, 43} {
			src := make([]byte, n*int(f.width))
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			count, each := f.symbols(len(src))
			all := make([]byte, count*each)
			split(all, src, f)
			if i := n - 1; f.layout == planes && f.width > 1 && all[each+i] != src[i*int(f.width)+1] {
				t.Errorf("%v, %d elements: the second byte of the last one differs", f, n)
			}
			if f.layout == rotatedPlanes && all[0]&1 != src[f.width-1]>>7 {
				t.Errorf("%v, %d elements: the lowest bit is not the sign", f, n)
			}
			got := make([]byte, len(src))
			merge(got, slices.Collect(slices.Chunk(all, each)), f)
			if !bytes.Equal(got, src) {
				t.Errorf("%v, %d elements: got %x, want %x", f, n, got, src)
			}
		}
	}
}
