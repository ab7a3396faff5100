package narrow

import "github.com/mcompress/mcompress/ir"

// IsInt reports whether DecodeInts and EncodeInts support dt.
func IsInt(dt ir.DType) bool {
	return dt == ir.Int4 || dt == ir.Uint4 || dt == ir.Int2 || dt == ir.Uint2
}

// DecodeInts writes len(dst) elements of type dt, as int8 or uint8 of the same value. x holds them packed.
func DecodeInts(dst []byte, x []byte, dt ir.DType) {
	spare := 8 - dt.Bits()
	if dt == ir.Int4 || dt == ir.Int2 {
		unpack(dst, x, int(dt.Bits()), func(code uint8) byte { return byte(int8(code<<spare) >> spare) })
		return
	}
	unpack(dst, x, int(dt.Bits()), func(code uint8) byte { return code })
}

// EncodeInts packs the lowest bits of x.
func EncodeInts(dst []byte, x []byte, dt ir.DType) {
	pack(dst, x, int(dt.Bits()), func(v byte) uint8 { return v })
}

// Element is element i of packed values of that many bits.
func Element(x []byte, i, bits int) byte {
	at := i * bits
	return x[at/8] >> (at % 8) & (1<<bits - 1)
}

// group is a number of elements that fill whole bytes, whatever their width.
const group = 4

// unpack reads len(dst) elements of that many bits.
func unpack[T any](dst []T, x []byte, bits int, value func(code uint8) T) {
	size := group * bits / 8
	for i := 0; i < len(dst); i += group {
		var word uint32
		for j := range min(size, len(x)) {
			word |= uint32(x[j]) << (8 * j)
		}
		for j := range min(group, len(dst)-i) {
			dst[i+j] = value(uint8(word >> (j * bits) & (1<<bits - 1)))
		}
		x = x[min(size, len(x)):]
	}
}

// pack writes the bits of every element of x. Bits after the last one are zero.
func pack[T any](dst []byte, x []T, bits int, code func(T) uint8) {
	size := group * bits / 8
	for i := 0; i < len(x); i += group {
		var word uint32
		for j, v := range x[i:min(i+group, len(x))] {
			word |= uint32(code(v)&(1<<bits-1)) << (j * bits)
		}
		for j := range min(size, len(dst)) {
			dst[j] = byte(word >> (8 * j))
		}
		dst = dst[min(size, len(dst)):]
	}
}
