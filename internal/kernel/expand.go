package kernel

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Expand is the inverse of NonZero and Compress: it fills dst with the next element of values where mask has a bit set,
// and with zeros elsewhere. It returns the number of bytes of values used; values must hold an element for every bit.
// Bits of mask after the last element are ignored.
func Expand(dst, mask, values []byte, size int) (used int) {
	count := elements(dst, size)
	checkLen("mask", len(mask), (count+7)/8)
	if need := countBits(mask, count) * size; need > len(values) {
		panic(fmt.Sprintf("kernel: %d bytes of values, mask needs %d", len(values), need))
	}
	n, used := expandBulk(dst, mask, values, size)
	return used + expandGo(dst[n*size:], mask[n/8:], values[used:], size)
}

// countBits counts the set ones of the first n bits.
func countBits(mask []byte, n int) int {
	count := 0
	for ; n >= 64; n, mask = n-64, mask[8:] {
		count += bits.OnesCount64(binary.LittleEndian.Uint64(mask))
	}
	for ; n >= 8; n, mask = n-8, mask[1:] {
		count += bits.OnesCount8(mask[0])
	}
	if n > 0 {
		count += bits.OnesCount8(mask[0] & (1<<n - 1))
	}
	return count
}

func expandGo(dst, mask, values []byte, size int) (used int) {
	clear(dst)
	for i, b := range mask {
		for ; b != 0; b &= b - 1 {
			at := (8*i + bits.TrailingZeros8(b)) * size
			if at >= len(dst) {
				break
			}
			copy(dst[at:at+size], values[used:])
			used += size
		}
	}
	return used
}
