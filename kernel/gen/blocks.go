package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// blocksFamily is what blocks of weights that share a scale are rounded with.
func blocksFamily() {
	searchBlock()
	pairBytes()
}

// A halfTile is what is known of eight columns: the two halves of a tile are gone through together, as each waits for itself.
type halfTile struct{ inv, lo, hi, qq, qx VecVirtual }

func searchBlock() {
	function("searchBlockAVX2", "func(scale, zero, x *float32, rows int, base, mid *float32, lo, hi, center float32, factors *float32, n int, best *float32)",
		"searchBlockAVX2 expects best to be below every score, scale and zero to hold what stands where nothing is better.")
	factors, n := pointer("factors"), pointer("n")
	Label("factor")
	halves := [2]halfTile{}
	for i := range halves {
		halves[i] = candidate(factors, i)
	}
	x, rows := pointer("x"), pointer("rows")
	strips("rows", rows, 1, func() {
		for i, h := range halves {
			v, q := YMM(), YMM()
			VMOVUPS(at(x, i), v)
			VMULPS(h.inv, v, q)
			VMAXPS(h.lo, q, q)
			VMINPS(h.hi, q, q)
			VROUNDPS(U8(0), q, q) // 0: to nearest, half to even
			VMULPS(q, v, v)
			VMULPS(q, q, q)
			VADDPS(v, h.qx, h.qx)
			VADDPS(q, h.qq, h.qq)
		}
		advance(x, 2*vector)
	})
	for i, h := range halves {
		keep(h, i)
	}
	advance(factors, 4)
	DECQ(n)
	JNE(LabelRef("factor"))
	finish()
}

// candidate is the step of a factor for the i-th half, with its bounds relative to the zero point.
func candidate(factors Register, i int) halfTile {
	h := halfTile{inv: YMM(), lo: spread("lo"), hi: spread("hi"), qq: zero(), qx: zero()}
	z, one := spread("center"), constant(0x3f800000)
	VBROADCASTSS(Mem{Base: factors}, h.inv)
	VMULPS(at(pointer("base"), i), h.inv, h.inv)
	VDIVPS(h.inv, one, h.inv)
	t := YMM()
	VMULPS(at(pointer("mid"), i), h.inv, t)
	VSUBPS(t, z, z)
	VMAXPS(h.lo, z, z)
	VMINPS(h.hi, z, z)
	VROUNDPS(U8(0), z, z)
	VSUBPS(z, h.lo, h.lo)
	VSUBPS(z, h.hi, h.hi)
	return h
}

// keep writes scale, zero and score of the columns whose score is better than best. The zero point is what lo was moved by.
func keep(h halfTile, i int) {
	score, better, best, t := YMM(), YMM(), pointer("best"), YMM()
	VMULPS(h.qx, h.qx, score)
	VDIVPS(h.qq, score, score)
	VMOVUPS(at(best, i), t)
	VCMPPS(U8(1), score, t, better) // 1: best < score, false for NaN
	VMASKMOVPS(score, better, at(best, i))
	VDIVPS(h.qq, h.qx, t)
	VMASKMOVPS(t, better, at(pointer("scale"), i))
	lo := spread("lo")
	VSUBPS(h.lo, lo, lo)
	VMASKMOVPS(lo, better, at(pointer("zero"), i))
}

func pairBytes() {
	function("pairBytesAVX2", "func(dst, src *byte, n int, mask, factors uint32)",
		"pairBytesAVX2 takes pairs of bytes together; each 16 bits of factors are 1 and the second's factor; n%64 == 0.")
	dst, src, n, mask, factors := pointer("dst"), pointer("src"), pointer("n"), spread("mask"), spread("factors")
	strips("pairs", n, 64, func() {
		a, b := YMM(), YMM()
		VPAND(at(src, 0), mask, a)
		VPAND(at(src, 1), mask, b)
		VPMADDUBSW(factors, a, a)
		VPMADDUBSW(factors, b, b)
		VPACKUSWB(b, a, a)
		VPERMQ(U8(0xd8), a, a)
		VMOVDQU(a, at(dst, 0))
		advance(src, 2*vector)
		advance(dst, vector)
	})
	finish()
}
