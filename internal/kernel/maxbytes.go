package kernel

import "fmt"

// MaxBytes is the maximum under a window that slides over images of bytes, int8 if Signed, whose channels are adjacent
// (NHWC): element c of position p is the largest x[p*step+At[t]+c].
type MaxBytes struct {
	Channels int
	At       []int64
	Signed   bool
}

// Slide computes adjacent positions, whose windows are step elements of x apart.
func (m *MaxBytes) Slide(dst, x []byte, positions, step int) {
	if positions <= 0 || m.Channels <= 0 {
		return
	}
	if len(m.At) == 0 || step < 0 {
		panic(fmt.Sprintf("kernel: %d taps, positions %d apart", len(m.At), step))
	}
	within("dst", len(dst), positions*m.Channels)
	for _, a := range m.At {
		if a < 0 {
			panic("kernel: negative offset")
		}
		within("x", len(x), (positions-1)*step+int(a)+m.Channels)
	}
	m.plain(dst, x, positions, step, m.bulk(dst, x, positions, step))
}

// plain computes the channels from lo on.
func (m *MaxBytes) plain(dst, x []byte, positions, step, lo int) {
	// With the sign bit flipped, int8 have the order of bytes.
	flip := byte(0)
	if m.Signed {
		flip = 0x80
	}
	for p := range positions {
		for c := lo; c < m.Channels; c++ {
			largest := byte(0)
			for _, a := range m.At {
				largest = max(largest, x[p*step+int(a)+c]^flip)
			}
			dst[p*m.Channels+c] = largest ^ flip
		}
	}
}
