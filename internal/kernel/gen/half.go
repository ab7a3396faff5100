package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// halfFamily is the functions of Float16 tensors: they convert while they pack, transpose or store.
func halfFamily() {
	f16Saturated()
	for _, table := range []bool{false, true} {
		for _, stride := range []int{1, 2} {
			for _, part := range []bool{false, true} {
				packHalves(table, stride, part)
			}
		}
	}
	transposeHalves()
}

// f16Saturated is f16FromF32 of values that are clipped first. The comparisons return their second operand, v, if it is
// NaN.
func f16Saturated() {
	function("f16SaturatedAVX2", "func(dst *uint16, x *float32, n int, lo, hi float32)",
		"f16SaturatedAVX2 needs F16C and n%8 == 0.")
	dst, x, n, lo, hi := pointer("dst"), pointer("x"), pointer("n"), spread("lo"), spread("hi")
	convertStrips(n, x, dst, func(i int) {
		v := YMM()
		VMOVUPS(at(x, i), v)
		VMAXPS(v, lo, v)
		VMINPS(v, hi, v)
		VCVTPS2PH(U8(0), v, halfAt(dst, i))
	})
	finish()
}

// packHalves is packLanes of Float16 elements. It always reads a whole row of a panel, from the first element of the
// block on; of a part of the lanes, a mask selects those that are written.
func packHalves(table bool, stride int, part bool) {
	name, steps := "packHalves", "to, from int"
	if table {
		name, steps = "packHalvesAt", "at *int32"
	}
	lanes, mask, writes := "Whole", "", "16 lanes"
	if part {
		lanes, mask, writes = "Part", ", mask *int32", "the lanes of the mask"
	}
	name = fmt.Sprintf("%s%s%dAVX2", name, lanes, stride)
	function(name, fmt.Sprintf("func(dst *float32, x *uint16, rows int, %s%s)", steps, mask),
		fmt.Sprintf("%s needs F16C, writes %s and reads %d elements per row; strides in bytes.", name, writes,
			16*stride))
	dst, x, rows := pointer("dst"), pointer("x"), pointer("rows")
	var masks []VecVirtual
	if part {
		p := pointer("mask")
		masks = each(2, func(i int) VecVirtual {
			m := YMM()
			VMOVDQU(at(p, i), m)
			return m
		})
	}
	var low VecVirtual
	if stride == 2 {
		low = constant(0xffff)
	}
	row := func(x Mem) {
		for i, v := range halves(x, stride, low) {
			if part {
				VMASKMOVPS(v, masks[i], at(dst, i))
			} else {
				VMOVUPS(v, at(dst, i))
			}
		}
	}
	if table {
		offsets := pointer("at")
		strips("rows", rows, 1, func() {
			off := GP64()
			MOVLQSX(Mem{Base: offsets}, off)
			row(Mem{Base: x, Index: off, Scale: 2})
			advance(offsets, 4)
			advance(dst, panelBytes)
		})
		finish()
		return
	}
	to, from := pointer("to"), pointer("from")
	strips("rows", rows, 1, func() {
		row(Mem{Base: x})
		ADDQ(to, dst)
		ADDQ(from, x)
	})
	finish()
}

// halves are the 16 elements at x, stride apart, as float32. low selects the lower half of 32 bits.
func halves(x Mem, stride int, low VecVirtual) []VecVirtual {
	if stride == 1 {
		return each(2, func(i int) VecVirtual {
			v := YMM()
			VCVTPH2PS(x.Offset(i*vector/2), v)
			return v
		})
	}
	even := each(2, func(i int) VecVirtual {
		v := YMM()
		VPAND(x.Offset(i*vector), low, v)
		return v
	})
	// Within 128-bit lanes: VPERMQ brings the quarters into order.
	VPACKUSDW(even[1], even[0], even[0])
	VPERMQ(U8(0xd8), even[0], even[0])
	upper := XMM()
	VEXTRACTI128(U8(1), even[0], upper)
	VCVTPH2PS(even[0].AsX(), even[0])
	VCVTPH2PS(upper, even[1])
	return even
}

// transposeHalves transposes squares of 8×8 elements. Each of three rounds interleaves the elements of register i with
// those of i+4, after which register k holds column k.
func transposeHalves() {
	function("transposeHalves8AVX2", "func(dst *float32, dstStride int, src *uint16, srcStride int, rows int)",
		"transposeHalves8AVX2 transposes 8 columns of rows rows into 8 rows; strides in bytes, rows%8 == 0.")
	dst, dstStride := pointer("dst"), pointer("dstStride")
	src, srcStride, rows := pointer("src"), pointer("srcStride"), pointer("rows")
	strips("square", rows, 8, func() {
		square := each(8, func(int) VecVirtual {
			v := YMM()
			VMOVDQU(Mem{Base: src}, v.AsX())
			ADDQ(srcStride, src)
			return v
		})
		for range 3 {
			var mixed []VecVirtual
			for i := range 4 {
				low := YMM()
				VPUNPCKLWD(square[i+4].AsX(), square[i].AsX(), low.AsX())
				VPUNPCKHWD(square[i+4].AsX(), square[i].AsX(), square[i+4].AsX())
				mixed = append(mixed, low, square[i+4])
			}
			square = mixed
		}
		to := GP64()
		MOVQ(dst, to)
		for _, v := range square {
			VCVTPH2PS(v.AsX(), v)
			VMOVUPS(v, Mem{Base: to})
			ADDQ(dstStride, to)
		}
		advance(dst, vector)
	})
	finish()
}
