package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// doubles are multiplied in tiles of 6 rows by 8 columns: twelve sums are enough to hide the latency of an addition, and leave four
// registers.
var doubles = numbers{"double", "*float64", "*float64", "*float64", 8, VBROADCASTSD, VFMADD231PD, VADDPD}

func doubleFamily() {
	tile{6, 8, ymm, doubles}.emit()
	packEight()
}

// packEight packs a panel of contiguous columns.
func packEight() {
	function("packEightAVX2", "func(dst, src *float64, row, k int, factor float64)",
		"packEightAVX2 copies k rows of 8 elements, row bytes apart, times a factor; k > 0.")
	dst, src, row, k := pointer("dst"), pointer("src"), pointer("row"), pointer("k")
	factor := YMM()
	VBROADCASTSD(parameter("factor"), factor)
	Label("row")
	for i := range 2 {
		x := YMM()
		VMULPD(at(src, i), factor, x)
		VMOVUPD(x, at(dst, i))
	}
	ADDQ(row, src)
	advance(dst, panelBytes)
	DECQ(k)
	JNZ(LabelRef("row"))
	finish()
}
