package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	magnitude = 0x7fffffff
	infinity  = 0x7f800000
)

func absMaxBits() {
	function("absMaxBitsAVX2", "func(x *float32, n int) uint32", "absMaxBitsAVX2 needs n%8 == 0.")
	x, n, mask := pointer("x"), pointer("n"), constant(magnitude)
	acc := []VecVirtual{zero(), zero(), zero(), zero()}
	raise := func(i int) {
		t := YMM()
		// Without signs the bits of floats are in the order of the floats, with NaN above infinity.
		VPAND(at(x, i), mask, t)
		VPMAXSD(t, acc[i%4], acc[i%4])
	}
	strips("wide", n, 64, func() {
		for i := range 8 {
			raise(i)
		}
		advance(x, 8*vector)
	})
	strips("narrow", n, 8, func() {
		raise(0)
		advance(x, vector)
	})
	VPMAXSD(acc[1], acc[0], acc[0])
	VPMAXSD(acc[3], acc[2], acc[2])
	VPMAXSD(acc[2], acc[0], acc[0])
	top := fold(acc[0], VPMAXSD3)
	Store(top, ReturnIndex(0))
	finish()
}

// VPMAXSD3, VPMINSD3 and VPADDD3 have the plain signature that fold requires.
func VPMAXSD3(a, b, c Op) { VPMAXSD(a, b, c) }
func VPMINSD3(a, b, c Op) { VPMINSD(a, b, c) }
func VPADDD3(a, b, c Op)  { VPADDD(a, b, c) }

// rowPointers are the addresses of rows that are stride bytes apart.
func rowPointers(x, stride Register, rows int) []Register {
	p := []Register{x}
	for i := 1; i < rows; i++ {
		next := GP64()
		LEAQ(Mem{Base: p[i-1], Index: stride, Scale: 1}, next)
		p = append(p, next)
	}
	return p
}

// colAbsMaxBits reads several rows at once, so that acc is loaded and stored once for all of them.
func colAbsMaxBits(rows int) {
	name := fmt.Sprintf("colAbsMaxBits%dAVX2", rows)
	function(name, "func(acc *uint32, x *float32, stride int, n int)",
		fmt.Sprintf("%s raises acc by %d rows that are stride bytes apart; n%%8 == 0.", name, rows))
	acc, x, stride, n := pointer("acc"), pointer("x"), pointer("stride"), pointer("n")
	p, mask, off := rowPointers(x, stride, rows), constant(magnitude), GP64()
	XORQ(off, off)
	strips("columns", n, 8, func() {
		top := YMM()
		VMOVDQU(Mem{Base: acc, Index: off, Scale: 1}, top)
		for _, row := range p {
			t := YMM()
			VPAND(Mem{Base: row, Index: off, Scale: 1}, mask, t)
			VPMAXSD(t, top, top)
		}
		VMOVDQU(top, Mem{Base: acc, Index: off, Scale: 1})
		advance(off, vector)
	})
	finish()
}

// order maps float bits to integers of the same order, and back.
func order(v VecVirtual) {
	// Of negative numbers all other bits are inverted, as more magnitude is a lower number.
	t := YMM()
	VPSRAD(U8(31), v, t)
	VPSRLD(U8(1), t, t)
	VPXOR(t, v, v)
}

func minMax() {
	function("minMaxAVX2", "func(x *float32, n int) (lo, hi int32)",
		"minMaxAVX2 returns the ordered extremes; n%8 == 0, n > 0.")
	x, n := pointer("x"), pointer("n")
	lo := []VecVirtual{constant(0x7fffffff), constant(0x7fffffff)}
	hi := []VecVirtual{constant(0x80000000), constant(0x80000000)}
	widen := func(i int) {
		t := YMM()
		VMOVDQU(at(x, i), t)
		order(t)
		VPMINSD(t, lo[i%2], lo[i%2])
		VPMAXSD(t, hi[i%2], hi[i%2])
	}
	strips("wide", n, 32, func() {
		for i := range 4 {
			widen(i)
		}
		advance(x, 4*vector)
	})
	strips("narrow", n, 8, func() {
		widen(0)
		advance(x, vector)
	})
	VPMINSD(lo[1], lo[0], lo[0])
	VPMAXSD(hi[1], hi[0], hi[0])
	Store(fold(lo[0], VPMINSD3), Return("lo"))
	Store(fold(hi[0], VPMAXSD3), Return("hi"))
	finish()
}

func colMinMax(rows int) {
	name := fmt.Sprintf("colMinMax%dAVX2", rows)
	function(name, "func(lo, hi *float32, x *float32, stride int, n int)",
		fmt.Sprintf("%s widens lo and hi by %d rows that are stride bytes apart; n%%8 == 0.", name, rows))
	lo, hi, x := pointer("lo"), pointer("hi"), pointer("x")
	stride, n := pointer("stride"), pointer("n")
	p, off := rowPointers(x, stride, rows), GP64()
	XORQ(off, off)
	strips("columns", n, 8, func() {
		low, high := YMM(), YMM()
		VMOVDQU(Mem{Base: lo, Index: off, Scale: 1}, low)
		VMOVDQU(Mem{Base: hi, Index: off, Scale: 1}, high)
		order(low)
		order(high)
		for _, row := range p {
			t := YMM()
			VMOVDQU(Mem{Base: row, Index: off, Scale: 1}, t)
			order(t)
			VPMINSD(t, low, low)
			VPMAXSD(t, high, high)
		}
		order(low)
		order(high)
		VMOVDQU(low, Mem{Base: lo, Index: off, Scale: 1})
		VMOVDQU(high, Mem{Base: hi, Index: off, Scale: 1})
		advance(off, vector)
	})
	finish()
}
