package kernel

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzPlanes compares the planes of any elements with those of the twins, and merges them to the same elements.
func FuzzPlanes(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint8(40), true)
	f.Add([]byte{1, 0x80, 0xff}, uint8(3), false)
	f.Fuzz(func(t *testing.T, seed []byte, n uint8, turn bool) {
		if len(seed) == 0 {
			return
		}
		for _, width := range []int{2, 4} {
			src := bytes.Repeat(seed, width*int(n)/len(seed)+1)[:width*int(n)]
			planes := func() [][]byte { return slices.Collect(slices.Chunk(make([]byte, 4*int(n)+4), int(n)+1)) }
			got, want, merged, twin := planes(), planes(), make([]byte, len(src)), make([]byte, len(src))
			for _, p := range [][][]byte{got, want} {
				for i := range p {
					p[i] = p[i][:n]
				}
			}
			if width == 2 {
				SplitPlanes2(got[0], got[1], src, turn)
				splitPlanes2Go(want[0], want[1], src, turn)
				MergePlanes2(merged, want[0], want[1], turn)
				mergePlanes2Go(twin, want[0], want[1], turn)
			} else {
				SplitPlanes4(got[0], got[1], got[2], got[3], src, turn)
				splitPlanes4Go(want[0], want[1], want[2], want[3], src, turn)
				MergePlanes4(merged, want[0], want[1], want[2], want[3], turn)
				mergePlanes4Go(twin, want[0], want[1], want[2], want[3], turn)
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("width %d: planes %x, twin %x", width, got, want)
			}
			if !bytes.Equal(merged, src) || !bytes.Equal(twin, src) {
				t.Fatalf("width %d: merged to %x and %x, want %x", width, merged, twin, src)
			}
		}
	})
}
