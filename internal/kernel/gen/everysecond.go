package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// everySecond loads 8 elements, and 8 that begin with the last of these, as there may be none after the last one that
// is copied.
func everySecond() {
	function("everySecondAVX2", "func(dst, src *uint32, n int)",
		"everySecondAVX2 copies n elements that are two apart; n%8 == 0.")
	dst, src, n := pointer("dst"), pointer("src"), pointer("n")
	strips("copy", n, 8, func() {
		v := YMM()
		VMOVUPS(Mem{Base: src}, v)
		VSHUFPS(U8(0xd8), Mem{Base: src, Disp: vector - 4}, v, v)
		VPERMPD(U8(0xd8), v, v)
		VMOVUPS(v, Mem{Base: dst})
		advance(dst, vector)
		advance(src, 2*vector)
	})
	finish()
}
