package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// convertStrips processes four vectors of float32 at a time, then one; wide and half advance by vectors and half
// vectors.
func convertStrips(n, wide, half Register, body func(i int)) {
	for _, s := range []struct {
		label string
		count int
	}{{"wide", 4}, {"narrow", 1}} {
		strips(s.label, n, s.count*8, func() {
			for i := range s.count {
				body(i)
			}
			advance(wide, s.count*vector)
			advance(half, s.count*vector/2)
		})
	}
}

// halfAt is the i-th half vector after p.
func halfAt(p Register, i int) Mem { return Mem{Base: p, Disp: i * vector / 2} }

func f16FromF32() {
	function("f16FromF32AVX2", "func(dst *uint16, x *float32, n int)", "f16FromF32AVX2 needs F16C and n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	convertStrips(n, x, dst, func(i int) {
		v := YMM()
		VMOVUPS(at(x, i), v)
		VCVTPS2PH(U8(0), v, halfAt(dst, i)) // 0: to nearest, half to even
	})
	finish()
}

func f32FromF16() {
	function("f32FromF16AVX2", "func(dst *float32, x *uint16, n int)", "f32FromF16AVX2 needs F16C and n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	convertStrips(n, dst, x, func(i int) {
		v := YMM()
		VCVTPH2PS(halfAt(x, i), v)
		VMOVUPS(v, at(dst, i))
	})
	finish()
}

func bf16FromF32() {
	function("bf16FromF32AVX2", "func(dst *uint16, x *float32, n int)", "bf16FromF32AVX2 needs n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	mask, inf, one := constant(magnitude), constant(infinity), constant(1)
	bias, quiet := constant(0x7fff), constant(0x40)
	convertStrips(n, x, dst, func(i int) {
		v, odd, nan := YMM(), YMM(), YMM()
		VMOVDQU(at(x, i), v)
		VPAND(mask, v, nan)
		VPCMPGTD(inf, nan, nan)
		VPSRLD(U8(16), v, odd)
		quieted := YMM()
		VPOR(quiet, odd, quieted)
		VPAND(one, odd, odd)
		VPADDD(bias, v, v)
		VPADDD(odd, v, v)
		VPSRLD(U8(16), v, v)
		VPBLENDVB(nan, quieted, v, v)
		high := XMM()
		VEXTRACTI128(U8(1), v, high)
		VPACKUSDW(high, v.AsX(), v.AsX())
		VMOVDQU(v.AsX(), halfAt(dst, i))
	})
	finish()
}

func f32FromBF16() {
	function("f32FromBF16AVX2", "func(dst *float32, x *uint16, n int)", "f32FromBF16AVX2 needs n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	convertStrips(n, dst, x, func(i int) {
		v := YMM()
		VPMOVZXWD(halfAt(x, i), v)
		VPSLLD(U8(16), v, v)
		VMOVDQU(v, at(dst, i))
	})
	finish()
}
