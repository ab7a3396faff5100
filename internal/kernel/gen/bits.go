package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// bitsFamily dequantizes weights of a few bits.
func bitsFamily() {
	for _, bits := range []int{2, 4, 8} {
		dequantizePanel(bits)
	}
}

// dequantizePanel dequantizes rows of 16 values: value minus zero, times scale. Values of 2 and 4 bits are loaded into all lanes, and each
// lane is shifted by its own distance.
func dequantizePanel(bits int) {
	name := fmt.Sprintf("dequantizePanel%dAVX2", bits)
	function(name, "func(dst *float32, codes *byte, rows int, scale, zero *float32)",
		fmt.Sprintf("%s writes rows of 16 elements of %d bits.", name, bits))
	dst, codes, rows, scale, zeroPoint := pointer("dst"), pointer("codes"), pointer("rows"), pointer("scale"), pointer("zero")
	var scales, zeros, shifts []VecVirtual
	for i := range 2 {
		s, z := YMM(), YMM()
		VMOVUPS(at(scale, i), s)
		VMOVUPS(at(zeroPoint, i), z)
		scales, zeros = append(scales, s), append(zeros, z)
		if bits < 8 {
			shifts = append(shifts, YMM())
			VMOVDQU(codeShifts(bits, i), shifts[i])
		}
	}
	mask := constant(1<<bits - 1)
	strips("rows", rows, 1, func() {
		for i := range 2 {
			v := YMM()
			if bits == 8 {
				VPMOVZXBD(Mem{Base: codes, Disp: 8 * i}, v)
			} else {
				VBROADCASTSS(Mem{Base: codes, Disp: i * 8 * bits / 8 &^ 3}, v)
				VPSRLVD(shifts[i], v, v)
				VPAND(mask, v, v)
			}
			VCVTDQ2PS(v, v)
			VSUBPS(zeros[i], v, v)
			VMULPS(scales[i], v, v)
			VMOVUPS(v, at(dst, i))
		}
		advance(dst, panelBytes)
		advance(codes, 2*bits)
	})
	finish()
}

// codeShifts are the shifts of the values of eight lanes within their 32 bits.
func codeShifts(bits, half int) Mem {
	var v []uint32
	for i := range 8 {
		v = append(v, uint32((half*8+i)*bits%32))
	}
	return words(fmt.Sprintf("codeShifts%d%d", bits, half), v...)
}
