package pack

import "encoding/binary"

// differences writes the elements of src minus the ones before them into dst, as unsigned numbers that are small for small differences
// of either sign (zigzag). Elements have width bytes.
func differences(dst, src []byte, width int) {
	each(width, len(src), func(i int, mask, sign uint64) {
		put(dst, i, width, zigzag(element(src, i, width)-prediction(src, i, width), mask, sign))
	})
}

func zigzag(d, mask, sign uint64) uint64 {
	if d &= mask; d&sign != 0 {
		return ^(d << 1)
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

// differencesFrom writes the elements of src minus those of base into dst, as differences does.
func differencesFrom(dst, src, base []byte, width int) {
	if width == 4 {
		for i := 0; i < len(src); i += 4 {
			d := binary.LittleEndian.Uint32(src[i:]) - binary.LittleEndian.Uint32(base[i:])
			binary.LittleEndian.PutUint32(dst[i:], d<<1^uint32(int32(d)>>31))
		}
		return
	}
	each(width, len(src), func(i int, mask, sign uint64) {
		put(dst, i, width, zigzag(element(src, i, width)-element(base, i, width), mask, sign))
	})
}

// restoreFrom replaces the differences in b by the elements.
func restoreFrom(b, base []byte, width int) {
	if width == 4 {
		for i := 0; i < len(b); i += 4 {
			d := binary.LittleEndian.Uint32(b[i:])
			binary.LittleEndian.PutUint32(b[i:], (d>>1^-(d&1))+binary.LittleEndian.Uint32(base[i:]))
		}
		return
	}
	each(width, len(b), func(i int, _, _ uint64) {
		d := element(b, i, width)
		put(b, i, width, (d>>1^-(d&1))+element(base, i, width))
	})
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
