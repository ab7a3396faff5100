package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// transposeBytes processes 16 columns in squares of 16×16. A register holds row i and row i+8 in its lanes, so that
// eight registers hold a square.
func transposeBytes() {
	function("transposeBytes16AVX2", "func(dst *byte, dstStride int, src *byte, srcStride int, rows int)",
		"transposeBytes16AVX2 transposes 16 columns of rows rows into 16 rows; rows%16 == 0.")
	dst, dstStride := pointer("dst"), pointer("dstStride")
	src, srcStride, rows := pointer("src"), pointer("srcStride"), pointer("rows")
	strips("square", rows, 16, func() {
		square := loadSquare(src, srcStride)
		for range 3 {
			square = interleave(square)
		}
		storeSquare(dst, dstStride, square)
		advance(dst, 16)
	})
	finish()
}

// loadSquare advances src by 16 rows.
func loadSquare(src, stride Register) []VecVirtual {
	var square []VecVirtual
	for range 8 {
		v := YMM()
		VMOVDQU(Mem{Base: src}, v.AsX())
		ADDQ(stride, src)
		square = append(square, v)
	}
	for _, v := range square {
		VINSERTI128(U8(1), Mem{Base: src}, v, v)
		ADDQ(stride, src)
	}
	return square
}

// interleave interleaves the bytes of register i with those of i+4. It moves the top bit of the register number to the
// bottom of the byte number and the top bit of that to the bottom of the register number; after three rounds register k
// holds columns 2k and 2k+1.
func interleave(v []VecVirtual) []VecVirtual {
	var mixed []VecVirtual
	for i := range 4 {
		low := YMM()
		VPUNPCKLBW(v[i+4], v[i], low)
		VPUNPCKHBW(v[i+4], v[i], v[i+4])
		mixed = append(mixed, low, v[i+4])
	}
	return mixed
}

// storeSquare joins the halves of each column, rows 0 to 7 and 8 to 15, which are in different lanes.
func storeSquare(dst, stride Register, square []VecVirtual) {
	p := GP64()
	MOVQ(dst, p)
	for _, v := range square {
		VPERMQ(U8(0xd8), v, v)
		VMOVDQU(v.AsX(), Mem{Base: p})
		ADDQ(stride, p)
		VEXTRACTI128(U8(1), v, Mem{Base: p})
		ADDQ(stride, p)
	}
}

// transposeWords transposes squares of 8×8 elements. A register holds four columns of row i and of row i+4 in its
// lanes. Each of two rounds interleaves the elements of register i with those of i+2, after which register k holds
// column k.
func transposeWords() {
	function("transposeWords8AVX2", "func(dst *uint32, dstStride int, src *uint32, srcStride int, rows int)",
		"transposeWords8AVX2 transposes 8 columns of rows rows into 8 rows; strides in bytes, rows%8 == 0.")
	dst, dstStride := pointer("dst"), pointer("dstStride")
	src, srcStride, rows := pointer("src"), pointer("srcStride"), pointer("rows")
	strips("square", rows, 8, func() {
		halves := [2][]VecVirtual{each(4, func(int) VecVirtual { return YMM() }),
			each(4, func(int) VecVirtual { return YMM() })}
		for i := range 8 {
			for h, half := range halves {
				from := Mem{Base: src, Disp: 16 * h}
				if i < 4 {
					VMOVUPS(from, half[i].AsX())
				} else {
					VINSERTF128(U8(1), from, half[i-4], half[i-4])
				}
			}
			ADDQ(srcStride, src)
		}
		to := GP64()
		MOVQ(dst, to)
		for _, half := range halves {
			for range 2 {
				var mixed []VecVirtual
				for i := range 2 {
					low := YMM()
					VUNPCKLPS(half[i+2], half[i], low)
					VUNPCKHPS(half[i+2], half[i], half[i+2])
					mixed = append(mixed, low, half[i+2])
				}
				half = mixed
			}
			for _, v := range half {
				VMOVUPS(v, Mem{Base: to})
				ADDQ(dstStride, to)
			}
		}
		advance(dst, vector)
	})
	finish()
}
