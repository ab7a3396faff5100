package kernel

import (
	"encoding/binary"
	"fmt"
)

// Packed is the number of bytes of n packed values of 2, 4 or 8 bits.
func Packed(n, bits int) int { return (n*bits + 7) / 8 }

// Pack writes the low 2 or 4 bits of each value, lowest bits first, like ONNX; 8 bits are copied. dst has
// Packed(len(values), bits) bytes; the bits after the last value are 0. dst may be the start of values.
func Pack(dst, values []byte, bits int) {
	checkLen("dst", len(dst), Packed(len(values), bits))
	switch bits {
	case 8:
		copy(dst, values)
	case 4:
		pairBytes(dst, values, 15, 16)
	case 2:
		n := Packed(len(values), 4)
		half := make([]byte, min(n, packBlock))
		for at := 0; at < n; at += packBlock {
			part := half[:min(packBlock, n-at)]
			pairBytes(part, values[2*at:min(2*at+2*len(part), len(values))], 3, 4)
			pairBytes(dst[at/2:][:(len(part)+1)/2], part, 15, 16)
		}
	default:
		panic(fmt.Sprintf("kernel: values of %d bits, want 2, 4 or 8", bits))
	}
}

// packBlock is the number of bytes between the two steps of packing pairs of pairs.
const packBlock = 1 << 12

// Unpack writes each value of 2, 4 or 8 bits of packed, sign-extended if signed, one per byte.
func Unpack(values, packed []byte, bits int, signed bool) {
	checkLen("packed", len(packed), Packed(len(values), bits))
	if bits == 8 {
		copy(values, packed)
		return
	}
	n := len(values) / 8 * 8
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(values[i:], spread(packed[i*bits/8:], bits, signed))
	}
	unpackGo(values[n:], packed[n*bits/8:], bits, signed)
}

// spread is the first eight values of 2 or 4 bits in a byte each: the bits of neighbours move apart, half of them at a
// time.
func spread(packed []byte, bits int, signed bool) (x uint64) {
	if bits == 2 {
		x = uint64(binary.LittleEndian.Uint16(packed))
		x = (x | x<<24) & 0x000000ff000000ff
		x = (x | x<<12) & 0x000f000f000f000f
		x = (x | x<<6) & 0x0303030303030303
		if signed { // the sign of each value times the bits above it
			x |= x & 0x0202020202020202 * (0xfc / 2)
		}
		return x
	}
	x = uint64(binary.LittleEndian.Uint32(packed))
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	if signed {
		x |= x & 0x0808080808080808 * (0xf0 / 8)
	}
	return x
}

func unpackGo(values, packed []byte, bits int, signed bool) {
	per, mask := 8/bits, byte(1<<bits-1)
	top := byte(0) // adding and subtracting the top bit sign-extends it
	if signed {
		top = 1 << (bits - 1)
	}
	for i := range values {
		values[i] = (packed[i/per]>>(i%per*bits)&mask ^ top) - top
	}
}

// pairBytes packs a pair of src's bytes, masked, into one: the first plus factor times the second, which may be
// missing.
func pairBytes(dst, src []byte, mask, factor byte) {
	n := pairBytesBulk(dst, src, mask, factor)
	pairBytesGo(dst[n/2:], src[n:], mask, factor)
}

func pairBytesGo(dst, src []byte, mask, factor byte) {
	for i := range len(src) / 2 {
		dst[i] = src[2*i]&mask + src[2*i+1]&mask*factor
	}
	if n := len(src); n%2 == 1 {
		dst[n/2] = src[n-1] & mask
	}
}

// ByteValues is a table [256, 8/bits] of the values of 2 or 4 bits in each byte, the lowest bits first.
func ByteValues(bits int) []byte {
	var packed [256]byte
	for b := range packed {
		packed[b] = byte(b)
	}
	values := make([]byte, len(packed)*8/bits)
	Unpack(values, packed[:], bits, false)
	return values
}
