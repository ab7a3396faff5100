package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// blocksFamily quantizes blocks of weights that fraction a scale.
func blocksFamily() {
	loadBlock()
	searchBlock()
	pairBytes()
	roundBlock()
	balanceBlock()
	shrinkBlock()
}

func loadBlock() {
	function("loadBlockAVX2", "func(dst, lo, hi, src *float32, stride, rows int)",
		"loadBlockAVX2 copies rows of two vectors that are stride bytes apart, and widens lo and hi by them.")
	dst, los, his, src, stride, rows := pointer("dst"), pointer("lo"), pointer("hi"), pointer("src"),
		pointer("stride"), pointer("rows")
	var lo, hi [2]VecVirtual
	for i := range lo {
		lo[i], hi[i] = YMM(), YMM()
		VMOVUPS(at(los, i), lo[i])
		VMOVUPS(at(his, i), hi[i])
	}
	strips("rows", rows, 1, func() {
		for i := range lo {
			v := YMM()
			VMOVUPS(at(src, i), v)
			VMOVUPS(v, at(dst, i))
			VMINPS(lo[i], v, lo[i]) // NaN, and zeros of either sign, do not change the range
			VMAXPS(hi[i], v, hi[i])
		}
		ADDQ(stride, src)
		advance(dst, 2*vector)
	})
	for i := range lo {
		VMOVUPS(lo[i], at(los, i))
		VMOVUPS(hi[i], at(his, i))
	}
	finish()
}

// A halfTile is the state of eight columns: the two halves of a tile are processed together to hide latencies.
type halfTile struct{ inv, lo, hi, qq, qx VecVirtual }

func searchBlock() {
	function("searchBlockAVX2", "func(scale, zero, x *float32, rows int, base, mid *float32, lo, hi, center float32, "+
		"factors *float32, n int, best, squares *float32)",
		"searchBlockAVX2 updates scale, zero and best in the columns where a step is better. squares is scratch memory "+
			"for sums.")
	squares()
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

// squares sums those of each column.
func squares() {
	x, rows, sums := pointer("x"), pointer("rows"), [2]VecVirtual{zero(), zero()}
	strips("squares", rows, 1, func() {
		for i, s := range sums {
			v := YMM()
			VMOVUPS(at(x, i), v)
			VMULPS(v, v, v)
			VADDPS(v, s, s)
		}
		advance(x, 2*vector)
	})
	buf := pointer("squares")
	for i, s := range sums {
		VMOVUPS(s, at(buf, i))
	}
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

// keep writes scale, zero and score of the columns whose score is better than best. The zero point is the offset of lo.
func keep(h halfTile, i int) {
	score, better, best, t := YMM(), YMM(), pointer("best"), YMM()
	VMULPS(h.qx, h.qx, score)
	VDIVPS(h.qq, score, score)
	VMOVUPS(at(best, i), t)
	VCMPPS(U8(1), score, t, better) // 1: best < score, false for NaN
	VMASKMOVPS(score, better, at(best, i))
	VMOVUPS(at(pointer("squares"), i), t)
	VDIVPS(h.qx, t, t)
	VMASKMOVPS(t, better, at(pointer("scale"), i))
	lo := spread("lo")
	VSUBPS(h.lo, lo, lo)
	VMASKMOVPS(lo, better, at(pointer("zero"), i))
}

func pairBytes() {
	function("pairBytesAVX2", "func(dst, src *byte, n int, mask, factors uint32)",
		"pairBytesAVX2 combines pairs of bytes; each 16 bits of factors are 1 and the second byte's factor; n%64 == 0.")
	dst, src, n, mask, factors := pointer("dst"), pointer("src"), pointer("n"), spread("mask"), spread("factors")
	strips("pairs", n, 64, func() {
		a, b := YMM(), YMM()
		VPAND(at(src, 0), mask, a)
		VPAND(at(src, 1), mask, b)
		VPMADDUBSW(factors, a, a)
		VPMADDUBSW(factors, b, b)
		// Packing is within halves of 128 bits, too.
		VPACKUSWB(b, a, a)
		VPERMQ(U8(0xd8), a, a)
		VMOVDQU(a, at(dst, 0))
		advance(src, 2*vector)
		advance(dst, vector)
	})
	finish()
}

// roundBlock is quantizeCols for rows of a tile.
func roundBlock() {
	function("roundBlockAVX2", "func(dst *byte, stride int, x *float32, rows int, scale *float32, zero *int32, lo, "+
		"hi int32)",
		"roundBlockAVX2 quantizes rows of two vectors, each column by its own scale and zero point. Rows of dst are "+
			"stride bytes apart.")
	dst, stride, x, rows, scale, zero := pointer("dst"), pointer("stride"), pointer("x"), pointer("rows"),
		pointer("scale"), pointer("zero")
	floor, shift := constant(0xc9800000), constant(roundShift) // -2^20
	lo, hi, low8 := spread16("lo"), spread16("hi"), constant(0x00ff00ff)
	var steps, zeros [2]VecVirtual
	for i := range steps {
		steps[i], zeros[i] = YMM(), YMM()
		VMOVUPS(at(scale, i), steps[i])
		VMOVDQU(at(zero, i), zeros[i])
		VPSUBD(shift, zeros[i], zeros[i])
	}
	strips("rows", rows, 1, func() {
		var v [2]VecVirtual
		for i := range v {
			v[i] = YMM()
			VMOVUPS(at(x, i), v[i])
			VDIVPS(steps[i], v[i], v[i])
			VMAXPS(floor, v[i], v[i])
			VADDPS(shift, v[i], v[i])
			VPADDD(zeros[i], v[i], v[i])
		}
		// Saturating packs and 16-bit bounds do what the twin does by min and max: both bounds are in int16.
		VPACKSSDW(v[1], v[0], v[0])
		VPMINSW(hi, v[0], v[0])
		VPMAXSW(lo, v[0], v[0])
		VPAND(low8, v[0], v[0])
		VPERMQ(U8(0xd8), v[0], v[0])
		VEXTRACTI128(U8(1), v[0], v[1].AsX())
		VPACKUSWB(v[1].AsX(), v[0].AsX(), v[0].AsX())
		VMOVDQU(v[0].AsX(), Mem{Base: dst})
		advance(x, 2*vector)
		ADDQ(stride, dst)
	})
	finish()
}

// balanceBlock is roundBlock of numbers that are shifted to bring the sum of errors to zero.
func balanceBlock() {
	function("balanceBlockAVX2", "func(dst *byte, stride int, x *float32, rows int, scale *float32, zero *int32, "+
		"carry *float32, lo, hi int32, fraction, most float32)",
		"balanceBlockAVX2 quantizes rows of two vectors. Numbers are shifted by carry·fraction, in steps and by at most "+
			"most steps, and errors added to carry.")
	dst, stride, x, rows, scale, zeros, carry := pointer("dst"), pointer("stride"), pointer("x"), pointer("rows"),
		pointer("scale"), pointer("zero"), pointer("carry")
	low8 := constant(0x00ff00ff)
	var lean, lo, hi, sum [2]VecVirtual
	for i := range lean {
		lean[i], lo[i], hi[i], sum[i] = spread("fraction"), spread("lo"), spread("hi"), zero()
		VMULPS(at(carry, i), lean[i], lean[i])
		VDIVPS(at(scale, i), lean[i], lean[i])
		least, most := zero(), spread("most")
		VSUBPS(most, least, least)
		VMAXPS(least, lean[i], lean[i])
		VMINPS(most, lean[i], lean[i])
		for _, v := range []VecVirtual{lo[i], hi[i]} {
			VPSUBD(at(zeros, i), v, v)
			VCVTDQ2PS(v, v)
		}
	}
	strips("rows", rows, 1, func() {
		var q [2]VecVirtual
		for i := range q {
			v := YMM()
			q[i] = YMM()
			VMOVUPS(at(x, i), v)
			VDIVPS(at(scale, i), v, v)
			VADDPS(lean[i], v, q[i])
			VMAXPS(lo[i], q[i], q[i])
			VMINPS(hi[i], q[i], q[i])
			VROUNDPS(U8(0), q[i], q[i])
			VSUBPS(v, q[i], v)
			VADDPS(v, sum[i], sum[i])
			VCVTPS2DQ(q[i], q[i])
			VPADDD(at(zeros, i), q[i], q[i])
		}
		VPACKSSDW(q[1], q[0], q[0])
		VPAND(low8, q[0], q[0])
		VPERMQ(U8(0xd8), q[0], q[0])
		VEXTRACTI128(U8(1), q[0], q[1].AsX())
		VPACKUSWB(q[1].AsX(), q[0].AsX(), q[0].AsX())
		VMOVDQU(q[0].AsX(), Mem{Base: dst})
		advance(x, 2*vector)
		ADDQ(stride, dst)
	})
	for i, s := range sum {
		VMULPS(at(scale, i), s, s)
		VADDPS(at(carry, i), s, s)
		VMOVUPS(s, at(carry, i))
	}
	finish()
}

func shrinkBlock() {
	function("shrinkBlockAVX2", "func(zero, x *float32, rows int, inverse *float32, lo, hi, lambda, fraction float32)",
		"shrinkBlockAVX2 processes rows of two vectors.")
	zeros, x, rows, inverse := pointer("zero"), pointer("x"), pointer("rows"), pointer("inverse")
	lo, hi, lambda, sign := spread("lo"), spread("hi"), spread("lambda"), constant(0x80000000)
	var z, inv, sum [2]VecVirtual
	none := zero()
	for i := range z {
		z[i], inv[i], sum[i] = YMM(), YMM(), zero()
		VMOVUPS(at(zeros, i), z[i])
		VMOVUPS(at(inverse, i), inv[i])
	}
	strips("rows", rows, 1, func() {
		for i := range z {
			v, q, e := YMM(), YMM(), YMM()
			VMULPS(at(x, i), inv[i], v)
			VADDPS(z[i], v, e)
			VMAXPS(lo, e, q)
			VMINPS(hi, q, q)
			VROUNDPS(U8(0), q, q)
			VSUBPS(q, e, e)
			VSUBPS(v, q, q)
			a := v
			VANDNPS(e, sign, a)
			t := YMM()
			VSQRTPS(a, t)
			VDIVPS(t, lambda, t)
			VSUBPS(t, a, a)
			VMAXPS(none, a, a)
			VANDPS(sign, e, e)
			VORPS(e, a, a)
			VADDPS(a, q, q)
			VADDPS(q, sum[i], sum[i])
		}
		advance(x, 2*vector)
	})
	fraction := spread("fraction")
	for i := range z {
		VMULPS(fraction, sum[i], sum[i])
		VMOVUPS(sum[i], at(zeros, i))
	}
	finish()
}
