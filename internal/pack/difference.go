package pack

import "encoding/binary"

// differences writes the elements of src minus the ones before them into dst, as unsigned numbers that are small for
// small differences of either sign (zigzag). Elements have width bytes.
func differences(dst, src []byte, width int) {
	each(width, len(src), func(i int, mask, sign uint64) {
		put(dst, i, width, zigzag(element(src, i, width)-prediction(src, i, width), mask, sign))
	})
}

func zigzag(d, mask, sign uint64) uint64 {
	if d &= mask; d&sign != 0 {
		// Negative ones become odd: -1 is 1, 1 is 2, -2 is 3.
		return ^(d << 1) & mask
	}
	return d << 1
}

// restore replaces the differences in b by the elements.
func restore(b []byte, width int) {
	each(width, len(b), func(i int, mask, _ uint64) {
		d := element(b, i, width)
		d = d>>1 ^ -(d & 1)
		put(b, i, width, d+prediction(b, i, width))
	})
}

// differencesFrom writes the elements of src as differences from those of base into dst, as differences does, but for
// zero: it becomes 1, and the numbers up to its difference move up by one. The elements of a pruned weight are thus 0,
// unchanged, and 1, pruned.
func differencesFrom(dst, src, base []byte, width int) {
	if width == 4 { // without calls for each element
		for i := 0; i < len(src); i += 4 {
			x, b := binary.LittleEndian.Uint32(src[i:]), binary.LittleEndian.Uint32(base[i:])
			binary.LittleEndian.PutUint32(dst[i:], uint32(fromBase(uint64(x), uint64(b), 1<<32-1, 1<<31)))
		}
		return
	}
	each(width, len(src), func(i int, mask, sign uint64) {
		put(dst, i, width, fromBase(element(src, i, width), element(base, i, width), mask, sign))
	})
}

func fromBase(x, b, mask, sign uint64) uint64 {
	if x == b {
		return 0
	}
	d, zero := zigzag(x-b, mask, sign), zigzag(-b, mask, sign)
	switch {
	case x == 0:
		return 1
	// The number of the difference that would make x zero is free, as zero is 1: those below it move up by one.
	case d < zero:
		return d + 1
	}
	return d
}

// restoreFrom replaces the differences in b by the elements.
func restoreFrom(b, base []byte, width int) {
	if width == 4 {
		for i := 0; i < len(b); i += 4 {
			d, from := binary.LittleEndian.Uint32(b[i:]), binary.LittleEndian.Uint32(base[i:])
			binary.LittleEndian.PutUint32(b[i:], uint32(toElement(uint64(d), uint64(from), 1<<32-1, 1<<31)))
		}
		return
	}
	each(width, len(b), func(i int, mask, sign uint64) {
		put(b, i, width, toElement(element(b, i, width), element(base, i, width), mask, sign))
	})
}

func toElement(d, b, mask, sign uint64) uint64 {
	if d == 0 {
		return b
	}
	zero := zigzag(-b, mask, sign)
	switch {
	// Where the base is zero itself, zero is the unchanged element and no number moves.
	case d == 1 && zero > 0:
		return 0
	case d <= zero:
		d--
	}
	return b + (d>>1 ^ -(d & 1))
}

// differencesFrom4 and restoreFrom4 are those of the halves of bytes.
func differencesFrom4(dst, src, base []byte) {
	for i, b := range base {
		low, high := fromBase(uint64(src[i]&15), uint64(b&15), 15, 8), fromBase(uint64(src[i]>>4), uint64(b>>4), 15, 8)
		dst[i] = byte(low | high<<4)
	}
}

func restoreFrom4(b, base []byte) {
	for i, from := range base {
		low, high := toElement(uint64(b[i]&15), uint64(from&15), 15, 8), toElement(uint64(b[i]>>4), uint64(from>>4), 15, 8)
		b[i] = byte(low&15 | high<<4)
	}
}

// each calls f with the offset of each element, and the bits and the sign bit of elements.
func each(width, bytes int, f func(i int, mask, sign uint64)) {
	sign := uint64(1) << (8*width - 1)
	for i := 0; i < bytes; i += width {
		f(i, sign<<1-1, sign)
	}
}

func prediction(b []byte, i, width int) uint64 {
	if i == 0 {
		return 0
	}
	return element(b, i-width, width)
}

func element(b []byte, i, width int) uint64 {
	switch width {
	case 1:
		return uint64(b[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b[i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b[i:]))
	}
	return binary.LittleEndian.Uint64(b[i:])
}

func put(b []byte, i, width int, v uint64) {
	switch width {
	case 1:
		b[i] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b[i:], uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b[i:], uint32(v))
	default:
		binary.LittleEndian.PutUint64(b[i:], v)
	}
}
