package pack

import "encoding/binary"

// split writes the planes of src, of elements of width bytes, into dst, one after the other.
func split(dst, src []byte, f form) {
	n := len(src) / int(f.width)
	turn := f.layout == rotatedPlanes
	switch {
	case f.layout == nibbles:
		for i, b := range src {
			dst[2*i], dst[2*i+1] = b&15, b>>4
		}
	case f.width == 1:
		copy(dst, src)
	case f.width == 2:
		split2(dst[:n], dst[n:2*n], src, turn)
	case f.width == 4:
		split4(dst[:n], dst[n:2*n], dst[2*n:3*n], dst[3*n:4*n], src, turn)
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
		merge2(dst, from[0], from[1], turn)
	case f.width == 4:
		merge4(dst, from[0], from[1], from[2], from[3], turn)
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

func split2(low, high, src []byte, turn bool) {
	for i := range low {
		x := binary.LittleEndian.Uint16(src[2*i:])
		if turn {
			x = x<<1 | x>>15
		}
		low[i], high[i] = byte(x), byte(x>>8)
	}
}

func merge2(dst, low, high []byte, turn bool) {
	for i, b := range low {
		x := uint16(b) | uint16(high[i])<<8
		if turn {
			x = x>>1 | x<<15
		}
		binary.LittleEndian.PutUint16(dst[2*i:], x)
	}
}

func split4(p0, p1, p2, p3, src []byte, turn bool) {
	for i := range p0 {
		x := binary.LittleEndian.Uint32(src[4*i:])
		if turn {
			x = x<<1 | x>>31
		}
		p0[i], p1[i], p2[i], p3[i] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
	}
}

func merge4(dst, p0, p1, p2, p3 []byte, turn bool) {
	for i, b := range p0 {
		x := uint32(b) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
		if turn {
			x = x>>1 | x<<31
		}
		binary.LittleEndian.PutUint32(dst[4*i:], x)
	}
}
