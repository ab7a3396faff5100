package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// storageFamily stores activations for the backward pass in few bits.
func storageFamily() {
	between()
	scaleMasked()
	quantizeStochastic()
}

// Predicates of comparisons that are true for NaN.
const (
	notLessEqual    = U8(6)
	notGreaterEqual = U8(9)
)

func between() {
	function("betweenAVX2", "func(mask *byte, x *float32, n int, lo, hi float32)", "betweenAVX2 needs n%8 == 0.")
	mask, x, n := pointer("mask"), pointer("x"), pointer("n")
	lo, hi := spread("lo"), spread("hi")
	test := func(i int) GPVirtual {
		v, w, bits := YMM(), YMM(), GP32()
		VMOVUPS(at(x, i), v)
		// Predicates that are true for NaN, as the twin's negated comparisons are.
		VCMPPS(notLessEqual, lo, v, w)
		VCMPPS(notGreaterEqual, hi, v, v)
		VANDPS(w, v, v)
		VMOVMSKPS(v, bits)
		return bits
	}
	strips("wide", n, 32, func() {
		all := test(0)
		for i := 1; i < 4; i++ {
			bits := test(i)
			SHLL(U8(8*i), bits)
			ORL(bits, all)
		}
		MOVL(all, Mem{Base: mask})
		advance(x, 4*vector)
		advance(mask, 4)
	})
	strips("narrow", n, 8, func() {
		MOVB(test(0).As8(), Mem{Base: mask})
		advance(x, vector)
		advance(mask, 1)
	})
	finish()
}

// scaleMasked keeps the product with off where its bits are in kept: none for a factor of zero, which is zero for NaN,
// too.
func scaleMasked() {
	function("scaleMaskedAVX2", "func(dst, x *float32, mask *byte, n int, on, off float32, kept uint32)",
		"scaleMaskedAVX2 needs n%8 == 0.")
	dst, x, mask, n := pointer("dst"), pointer("x"), pointer("mask"), pointer("n")
	on, off, kept, bit := spread("on"), spread("off"), spread("kept"), YMM()
	VMOVDQU(words("maskBits", 1, 2, 4, 8, 16, 32, 64, 128), bit)
	strips("loop", n, 8, func() {
		v, low, set, bits := YMM(), YMM(), YMM(), GP32()
		VMOVUPS(at(x, 0), v)
		MOVBLZX(Mem{Base: mask}, bits)
		VMOVD(bits, set.AsX())
		VPBROADCASTD(set.AsX(), set)
		VPAND(bit, set, set)
		VPCMPEQD(bit, set, set)
		VMULPS(off, v, low)
		VPAND(kept, low, low)
		VMULPS(on, v, v)
		VBLENDVPS(set, v, low, v)
		VMOVUPS(v, at(dst, 0))
		advance(dst, vector)
		advance(x, vector)
		advance(mask, 1)
	})
	finish()
}

// Factors of the integer hash in ../storage.go.
const hash1, hash2 = 0x7feb352d, 0x846ca68b

func quantizeStochastic() {
	function("quantizeStochasticAVX2", "func(dst *byte, x *float32, n int, lo, inverse float32, first uint32)",
		"quantizeStochasticAVX2 has the hash input of element 0 in first; n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	lo, inverse, index := spread("lo"), spread("inverse"), spread("first")
	// 255, 2^-24
	step, f1, f2, limit, unit := constant(8), constant(hash1), constant(hash2), constant(0x437f0000),
		constant(0x33800000)
	VPADDD(words("hashLanes", 0, 1, 2, 3, 4, 5, 6, 7), index, index)
	strips("loop", n, 8, func() {
		h, t, v := YMM(), YMM(), YMM()
		VPSRLD(U8(16), index, h)
		VPXOR(index, h, h)
		VPMULLD(f1, h, h)
		VPSRLD(U8(15), h, t)
		VPXOR(t, h, h)
		VPMULLD(f2, h, h)
		VPSRLD(U8(16), h, t)
		VPXOR(t, h, h)
		VPSRLD(U8(8), h, h)
		VCVTDQ2PS(h, h)
		VMULPS(unit, h, h)
		VMOVUPS(at(x, 0), v)
		VSUBPS(lo, v, v)
		VMULPS(inverse, v, v)
		VADDPS(h, v, v)
		VMINPS(limit, v, v)
		VCVTTPS2DQ(v, v)
		high := XMM()
		VEXTRACTI128(U8(1), v, high)
		VPACKUSDW(high, v.AsX(), v.AsX())
		VPACKUSWB(v.AsX(), v.AsX(), v.AsX())
		VMOVQ(v.AsX(), Mem{Base: dst})
		VPADDD(step, index, index)
		advance(x, vector)
		advance(dst, 8)
	})
	finish()
}
