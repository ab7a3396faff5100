package kernel

import "fmt"

// Packed is the number of bytes that n codes of 2, 4 or 8 bits take.
func Packed(n, bits int) int { return (n*bits + 7) / 8 }

// Pack writes the low 2 or 4 bits of each code, lowest bits first, as ONNX packs them; 8 bits are copied. dst has
// Packed(len(codes), bits) bytes; the bits behind the last code are 0. dst may be the start of codes.
func Pack(dst, codes []byte, bits int) {
	checkLen("dst", len(dst), Packed(len(codes), bits))
	switch bits {
	case 8:
		copy(dst, codes)
	case 4:
		pairBytes(dst, codes, 15, 16)
	case 2:
		n := Packed(len(codes), 4)
		half := make([]byte, min(n, packBlock))
		for at := 0; at < n; at += packBlock {
			part := half[:min(packBlock, n-at)]
			pairBytes(part, codes[2*at:min(2*at+2*len(part), len(codes))], 3, 4)
			pairBytes(dst[at/2:][:(len(part)+1)/2], part, 15, 16)
		}
	default:
		panic(fmt.Sprintf("kernel: codes of %d bits, want 2, 4 or 8", bits))
	}
}

// packBlock is how many bytes stand between the two steps of packing pairs of pairs.
const packBlock = 1 << 12

// Unpack writes the code of each group of 2, 4 or 8 bits of packed, sign-extended if signed, a byte each.
func Unpack(codes, packed []byte, bits int, signed bool) {
	checkLen("packed", len(packed), Packed(len(codes), bits))
	if bits == 8 {
		copy(codes, packed)
		return
	}
	per, mask := 8/bits, byte(1<<bits-1)
	top := byte(0) // adding and taking away the top bit spreads it
	if signed {
		top = 1 << (bits - 1)
	}
	for i := range codes {
		codes[i] = (packed[i/per]>>(i%per*bits)&mask ^ top) - top
	}
}

// pairBytes writes a pair of src's bytes, masked, as one: the first plus factor times the second. A byte without second
// stands alone.
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
