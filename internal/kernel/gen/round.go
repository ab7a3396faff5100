package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func roundFamily() { roundSums() }

// roundSums processes eight columns at a time. Products are rounded before they are added, like in its twin.
func roundSums() {
	function("roundSumsAVX2", "func(sums, x *float32, stride int, weight *float32, rows int, grid *float32)",
		"roundSumsAVX2 sums over rows for 8 columns: the weighted squared rounding errors, x·q and q·q; stride in bytes, rows > 0.")
	sums, x, stride := pointer("sums"), pointer("x"), pointer("stride")
	weight, rows, grid := pointer("weight"), pointer("rows"), pointer("grid")
	inverse, scale, low, high := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(at(grid, 0), inverse)
	VMOVUPS(at(grid, 1), scale)
	VMOVUPS(at(grid, 2), low)
	VMOVUPS(at(grid, 3), high)
	cost, moment, square := zero(), zero(), zero()
	Label("row")
	v, code, w, t := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: x}, v)
	VBROADCASTSS(Mem{Base: weight}, w)
	VMULPS(inverse, v, code)
	VROUNDPS(U8(0), code, code)
	VMAXPS(low, code, code)
	VMINPS(high, code, code)
	VMULPS(scale, code, t)
	VSUBPS(t, v, t)
	VMULPS(t, t, t)
	VMULPS(w, t, t)
	VADDPS(t, cost, cost)
	VMULPS(code, w, w)
	VMULPS(v, w, v)
	VADDPS(v, moment, moment)
	VMULPS(code, w, w)
	VADDPS(w, square, square)
	ADDQ(stride, x)
	advance(weight, 4)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VMOVUPS(cost, at(sums, 0))
	VMOVUPS(moment, at(sums, 1))
	VMOVUPS(square, at(sums, 2))
	finish()
}
