package pack

import (
	"encoding/binary"

	"github.com/mcompress/mcompress/internal/kernel"
)

// split writes the planes of src, of elements of width bytes, into dst, one after the other.
func split(dst, src []byte, f form) {
	n := len(src) / int(f.width)
	// IEEE 754 has the sign before the exponent: rotated left by one bit, the exponent of float32 and bfloat16 is
	// the highest byte, and the sign the lowest bit.
	turn := f.layout == rotatedPlanes
	switch {
	case f.layout == nibbles:
		for i, b := range src {
			dst[2*i], dst[2*i+1] = b&15, b>>4
		}
	case f.width == 1:
		copy(dst, src)
	case f.width == 2:
		kernel.SplitPlanes2(dst[:n], dst[n:2*n], src, turn)
	case f.width == 4:
		kernel.SplitPlanes4(dst[:n], dst[n:2*n], dst[2*n:3*n], dst[3*n:4*n], src, turn)
	default:
		for i := range n {
			x := binary.LittleEndian.Uint64(src[8*i:])
			if turn {
				x = x<<1 | x>>63
			}
			for p := range 8 {
				dst[p*n+i] = byte(x >> (8 * p))
			}
		}
	}
}

// merge is the inverse of split, from planes that are slices of their own.
func merge(dst []byte, from [][]byte, f form) {
	turn := f.layout == rotatedPlanes
	switch {
	case f.layout == nibbles:
		for i := range dst {
			dst[i] = from[0][2*i]&15 | from[0][2*i+1]<<4
		}
	case f.width == 1:
		copy(dst, from[0])
	case f.width == 2:
		kernel.MergePlanes2(dst, from[0], from[1], turn)
	case f.width == 4:
		kernel.MergePlanes4(dst, from[0], from[1], from[2], from[3], turn)
	default:
		for i := range len(dst) / 8 {
			x := uint64(0)
			for p := range 8 {
				x |= uint64(from[p][i]) << (8 * p)
			}
			if turn {
				x = x>>1 | x<<63
			}
			binary.LittleEndian.PutUint64(dst[8*i:], x)
		}
	}
}
