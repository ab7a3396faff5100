package kernel

import "encoding/binary"

// SplitPlanes2 writes the low bytes of the 2-byte elements of src into p0 and the high ones into p1, of elements that
// are first rotated by one bit to the left if turn is true. Lengths match.
func SplitPlanes2(p0, p1, src []byte, turn bool) {
	n := splitPlanes2Bulk(p0, p1, src, turn)
	splitPlanes2Go(p0[n:], p1[n:], src[2*n:], turn)
}

// MergePlanes2 is the inverse of SplitPlanes2.
func MergePlanes2(dst, p0, p1 []byte, turn bool) {
	n := mergePlanes2Bulk(dst, p0, p1, turn)
	mergePlanes2Go(dst[2*n:], p0[n:], p1[n:], turn)
}

// SplitPlanes4 is SplitPlanes2 for elements of 4 bytes.
func SplitPlanes4(p0, p1, p2, p3, src []byte, turn bool) {
	n := splitPlanes4Bulk(p0, p1, p2, p3, src, turn)
	splitPlanes4Go(p0[n:], p1[n:], p2[n:], p3[n:], src[4*n:], turn)
}

// MergePlanes4 is the inverse of SplitPlanes4.
func MergePlanes4(dst, p0, p1, p2, p3 []byte, turn bool) {
	n := mergePlanes4Bulk(dst, p0, p1, p2, p3, turn)
	mergePlanes4Go(dst[4*n:], p0[n:], p1[n:], p2[n:], p3[n:], turn)
}

// The twins process eight elements at a time, in words of 64 bits, and the rest one by one.

const (
	low8  = 0x00ff00ff00ff00ff
	low16 = 0x0000ffff0000ffff
	low32 = 0x00000000ffffffff
)

// even8 packs the even bytes of two words, even16 their even pairs of bytes.
func even8(a, b uint64) uint64 {
	a, b = a&low8, b&low8
	a, b = (a|a>>8)&low16, (b|b>>8)&low16
	return (a|a>>16)&low32 | (b|b>>16)<<32
}

func even16(a, b uint64) uint64 {
	a, b = a&low16, b&low16
	return (a|a>>16)&low32 | (b|b>>16)<<32
}

// spread8 and spread16 are the inverses for the lower half of a word.
func spread8(x uint64) uint64 {
	x = spread16(x)
	return (x | x<<8) & low8
}

func spread16(x uint64) uint64 {
	x &= low32
	return (x | x<<16) & low16
}

// turn2 rotates elements of 2 bytes by one bit to the left, turn4 those of 4 bytes; back2 and back4 are the inverses.
func turn2(x uint64) uint64 { return x<<1&^0x0001000100010001 | x>>15&0x0001000100010001 }

func back2(x uint64) uint64 { return x>>1&^0x8000800080008000 | x<<15&0x8000800080008000 }

func turn4(x uint64) uint64 { return x<<1&^0x0000000100000001 | x>>31&0x0000000100000001 }

func back4(x uint64) uint64 { return x>>1&^0x8000000080000000 | x<<31&0x8000000080000000 }

func splitPlanes2Go(p0, p1, src []byte, turn bool) {
	for len(p0) >= 8 && len(p1) >= 8 && len(src) >= 16 {
		a, b := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
		if turn {
			a, b = turn2(a), turn2(b)
		}
		binary.LittleEndian.PutUint64(p0, even8(a, b))
		binary.LittleEndian.PutUint64(p1, even8(a>>8, b>>8))
		p0, p1, src = p0[8:], p1[8:], src[16:]
	}
	for i := range p0 {
		x := uint64(binary.LittleEndian.Uint16(src[2*i:]))
		if turn {
			x = turn2(x)
		}
		p0[i], p1[i] = byte(x), byte(x>>8)
	}
}

func mergePlanes2Go(dst, p0, p1 []byte, turn bool) {
	for len(p0) >= 8 && len(p1) >= 8 && len(dst) >= 16 {
		x, y := binary.LittleEndian.Uint64(p0), binary.LittleEndian.Uint64(p1)
		a, b := spread8(x)|spread8(y)<<8, spread8(x>>32)|spread8(y>>32)<<8
		if turn {
			a, b = back2(a), back2(b)
		}
		binary.LittleEndian.PutUint64(dst, a)
		binary.LittleEndian.PutUint64(dst[8:], b)
		p0, p1, dst = p0[8:], p1[8:], dst[16:]
	}
	for i := range p0 {
		x := uint64(p0[i]) | uint64(p1[i])<<8
		if turn {
			x = back2(x)
		}
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(x))
	}
}

func splitPlanes4Go(p0, p1, p2, p3, src []byte, turn bool) {
	for len(p0) >= 8 && len(p1) >= 8 && len(p2) >= 8 && len(p3) >= 8 && len(src) >= 32 {
		a, b, c, d := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:]),
			binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
		if turn {
			a, b, c, d = turn4(a), turn4(b), turn4(c), turn4(d)
		}
		low, high := even16(a, b), even16(c, d)
		binary.LittleEndian.PutUint64(p0, even8(low, high))
		binary.LittleEndian.PutUint64(p1, even8(low>>8, high>>8))
		low, high = even16(a>>16, b>>16), even16(c>>16, d>>16)
		binary.LittleEndian.PutUint64(p2, even8(low, high))
		binary.LittleEndian.PutUint64(p3, even8(low>>8, high>>8))
		p0, p1, p2, p3, src = p0[8:], p1[8:], p2[8:], p3[8:], src[32:]
	}
	for i := range p0 {
		x := uint64(binary.LittleEndian.Uint32(src[4*i:]))
		if turn {
			x = turn4(x)
		}
		p0[i], p1[i], p2[i], p3[i] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
	}
}

func mergePlanes4Go(dst, p0, p1, p2, p3 []byte, turn bool) {
	for len(p0) >= 8 && len(p1) >= 8 && len(p2) >= 8 && len(p3) >= 8 && len(dst) >= 32 {
		w, x, y, z := binary.LittleEndian.Uint64(p0), binary.LittleEndian.Uint64(p1), binary.LittleEndian.Uint64(p2),
			binary.LittleEndian.Uint64(p3)
		for i := range 2 {
			low, high := spread8(w)|spread8(x)<<8, spread8(y)|spread8(z)<<8
			a, b := spread16(low)|spread16(high)<<16, spread16(low>>32)|spread16(high>>32)<<16
			if turn {
				a, b = back4(a), back4(b)
			}
			binary.LittleEndian.PutUint64(dst[16*i:], a)
			binary.LittleEndian.PutUint64(dst[16*i+8:], b)
			w, x, y, z = w>>32, x>>32, y>>32, z>>32
		}
		p0, p1, p2, p3, dst = p0[8:], p1[8:], p2[8:], p3[8:], dst[32:]
	}
	for i := range p0 {
		x := uint64(p0[i]) | uint64(p1[i])<<8 | uint64(p2[i])<<16 | uint64(p3[i])<<24
		if turn {
			x = back4(x)
		}
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(x))
	}
}
