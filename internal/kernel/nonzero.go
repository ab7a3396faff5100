package kernel

import (
	"encoding/binary"
	"fmt"
)

// NonZero sets bit i of mask, least significant bit first, if element i of data has any bit set, so that -0.0 (see
// PositiveZeros) and NaN count as values, and clears the others. It returns the number of set bits. Elements are little
// endian, of 1, 2, 4 or 8 bytes; mask has one bit for each, rounded up to bytes.
func NonZero(mask, data []byte, size int) int {
	count := elements(data, size)
	checkLen("mask", len(mask), (count+7)/8)
	n, set := nonZeroBulk(mask, data, size)
	return set + nonZeroGo(mask[n/8:], data[n*size:], size)
}

// NegativeZeros counts the elements of data that are -0.0: floats of 2, 4 or 8 bytes of which the sign is the only set
// bit.
func NegativeZeros(data []byte, size int) int {
	n := 0
	eachNegativeZero(data, size, func(int) { n++ })
	return n
}

// PositiveZeros makes -0.0 in data, floats of 2, 4 or 8 bytes, +0.0.
func PositiveZeros(data []byte, size int) {
	eachNegativeZero(data, size, func(sign int) { data[sign] = 0 })
}

// eachNegativeZero calls do with the index of the sign's byte of each element that is -0.0.
func eachNegativeZero(data []byte, size int, do func(sign int)) {
	elements(data, size)
	for i := 0; i < len(data); i += size {
		b, zero := data[i:i+size], false
		switch size {
		case 2:
			zero = binary.LittleEndian.Uint16(b) == 1<<15
		case 4:
			zero = binary.LittleEndian.Uint32(b) == 1<<31
		case 8:
			zero = binary.LittleEndian.Uint64(b) == 1<<63
		}
		if zero {
			do(i + size - 1)
		}
	}
}

// Compress appends to dst the elements of data that NonZero marks, in order.
func Compress(dst, data []byte, size int) []byte {
	elements(data, size)
	n, dst := compressBulk(dst, data, size)
	return compressGo(dst, data[n*size:], size)
}

// elements returns the number of elements of the given size in data.
func elements(data []byte, size int) int {
	if size != 1 && size != 2 && size != 4 && size != 8 {
		panic(fmt.Sprintf("kernel: elements of %d bytes", size))
	}
	if len(data)%size != 0 {
		panic(fmt.Sprintf("kernel: %d bytes are not whole elements of %d", len(data), size))
	}
	return len(data) / size
}

func nonZeroGo(mask, data []byte, size int) int {
	count := 0
	clear(mask)
	for i := 0; len(data) > 0; i++ {
		if load(data, size) != 0 {
			mask[i/8] |= 1 << (i % 8)
			count++
		}
		data = data[size:]
	}
	return count
}

func compressGo(dst, data []byte, size int) []byte {
	for ; len(data) > 0; data = data[size:] {
		if load(data, size) != 0 {
			dst = append(dst, data[:size]...)
		}
	}
	return dst
}

func load(data []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(data[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(data))
	case 4:
		return uint64(binary.LittleEndian.Uint32(data))
	default:
		return binary.LittleEndian.Uint64(data)
	}
}
