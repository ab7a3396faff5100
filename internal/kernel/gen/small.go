package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// smallFamily encodes floats of 8 and 4 bits. The formats differ in parameters: see ../smallfloat.go.
func smallFamily() {
	smallCodes("smallCodesAVX2", false)
	smallCodes("smallCodesColsAVX2", true)
	smallErrors()
}

// A smallCoder holds the constants of the encoding of a quotient.
type smallCoder struct {
	magnitude, sign, normal, unit, round, one, largest VecVirtual
	drop, down                                         VecVirtual // shifts of encodings and signs
}

func newSmallCoder() smallCoder {
	c := smallCoder{
		magnitude: constant(magnitude), one: constant(1),
		sign: spread("sign"), normal: spread("normal"), unit: spread("unit"), round: spread("round"),
		largest: spread("largest"),
		drop:    XMM(), down: XMM(),
	}
	VMOVD(Load(Param("drop"), GP32()), c.drop)
	VMOVD(Load(Param("down"), GP32()), c.down)
	return c
}

// code leaves the encoding of v in each 32 bits.
func (c smallCoder) code(v VecVirtual) {
	m, t, small := YMM(), YMM(), YMM()
	// The steps of SmallFloat.encode: both cases are computed, and one is selected.
	VPAND(c.magnitude, v, m)
	VPCMPGTD(m, c.normal, small)
	VPSRLD(c.drop, m, t)
	VPAND(c.one, t, t)
	VPADDD(m, t, t)
	VPADDD(c.round, t, t)
	VPSRLD(c.drop, t, t)
	VADDPS(c.unit, m, m)
	VPSUBD(c.unit, m, m)
	VPBLENDVB(small, m, t, m)
	VPMINUD(c.largest, m, m)
	VPSRLD(c.down, v, v)
	VPAND(c.sign, v, v)
	VPOR(m, v, v)
}

// smallCodes divides by one scale, or each column by its own.
func smallCodes(name string, cols bool) {
	scales := "scale float32"
	if cols {
		scales = "scale *float32"
	}
	function(name, "func(dst *byte, x *float32, n int, "+scales+
		", normal, unit, round, sign, largest, drop, down uint32)",
		name+" has the constants of a SmallFloat as parameters; n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	pointers := []Register{x}
	quotient := func(int) Op { return nil }
	if cols {
		p := pointer("scale")
		pointers, quotient = append(pointers, p), func(i int) Op { return at(p, i) }
	} else {
		scale := spread("scale")
		quotient = func(int) Op { return scale }
	}
	c := newSmallCoder()
	code := func(i int) VecVirtual {
		v := YMM()
		VMOVUPS(at(x, i), v)
		VDIVPS(quotient(i), v, v)
		c.code(v)
		return v
	}
	strips("wide", n, 16, func() {
		v, w := code(0), code(1)
		VPACKUSDW(w, v, v)
		VPERMQ(U8(0xd8), v, v)
		VEXTRACTI128(U8(1), v, w.AsX())
		VPACKUSWB(w.AsX(), v.AsX(), v.AsX())
		VMOVDQU(v.AsX(), Mem{Base: dst})
		advanceAll(pointers, 2*vector)
		advance(dst, vector/2)
	})
	strips("narrow", n, 8, func() {
		v, high := code(0), XMM()
		VEXTRACTI128(U8(1), v, high)
		VPACKUSDW(high, v.AsX(), v.AsX())
		VPACKUSWB(v.AsX(), v.AsX(), v.AsX())
		VMOVQ(v.AsX(), Mem{Base: dst})
		advanceAll(pointers, vector)
		advance(dst, 8)
	})
	finish()
}

// smallErrors rounds by the sum with a number whose last place is the format's at that magnitude.
func smallErrors() {
	function("smallErrorsAVX2", "func(sums, x *float32, rows int, scale *float32, normal, up uint32, largest float32)",
		"smallErrorsAVX2 sums the squared rounding errors over rows of two vectors.")
	sums, x, rows, scale := pointer("sums"), pointer("x"), pointer("rows"), pointer("scale")
	mask, exponent, normal, up, largest := constant(magnitude), constant(infinity), spread("normal"), spread("up"),
		spread("largest")
	var steps, sum [2]VecVirtual
	for i := range steps {
		steps[i], sum[i] = YMM(), zero()
		VMOVUPS(at(scale, i), steps[i])
	}
	strips("rows", rows, 1, func() {
		for i := range steps {
			v, q, m := YMM(), YMM(), YMM()
			VANDPS(at(x, i), mask, v)
			VDIVPS(steps[i], v, q)
			VMINPS(largest, q, q)
			// Magnitudes as integers: the exponent of the number, or of the least normal one.
			VPMAXSD(normal, q, m)
			VPAND(exponent, m, m)
			VPADDD(up, m, m)
			VADDPS(m, q, q)
			VSUBPS(m, q, q)
			VMULPS(steps[i], q, q)
			VSUBPS(q, v, v)
			VMULPS(v, v, v)
			VADDPS(v, sum[i], sum[i])
		}
		advance(x, 2*vector)
	})
	for i, s := range sum {
		VMOVUPS(s, at(sums, i))
	}
	finish()
}
