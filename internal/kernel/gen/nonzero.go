package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// zeroTest tests elements after data and returns a bit for each that is zero.
type zeroTest func(data Register, zeros VecVirtual) GPVirtual

func zeroMask1(data Register, zeros VecVirtual) GPVirtual {
	v, m := YMM(), GP32()
	VPCMPEQB(at(data, 0), zeros, v)
	VPMOVMSKB(v, m)
	return m
}

func zeroMask2(data Register, zeros VecVirtual) GPVirtual {
	a, b, m := YMM(), YMM(), GP32()
	VPCMPEQW(at(data, 0), zeros, a)
	VPCMPEQW(at(data, 1), zeros, b)
	// -1 and 0 stay so in packing, which is within halves of 128 bits.
	VPACKSSWB(b, a, a)
	VPERMQ(U8(0xd8), a, a)
	VPMOVMSKB(a, m)
	return m
}

func zeroMask4(data Register, zeros VecVirtual) GPVirtual {
	v, m := YMM(), GP32()
	VPCMPEQD(at(data, 0), zeros, v)
	VMOVMSKPS(v, m)
	return m
}

func zeroMask8(data Register, zeros VecVirtual) GPVirtual {
	a, b, low, high := YMM(), YMM(), GP32(), GP32()
	VPCMPEQQ(at(data, 0), zeros, a)
	VPCMPEQQ(at(data, 1), zeros, b)
	VMOVMSKPD(a, low)
	VMOVMSKPD(b, high)
	SHLL(U8(4), high)
	ORL(high, low)
	return low
}

func nonZero1() { nonZero("nonZero1AVX2", 32, vector, zeroMask1) }
func nonZero2() { nonZero("nonZero2AVX2", 32, 2*vector, zeroMask2) }
func nonZero4() { nonZero("nonZero4AVX2", 8, vector, zeroMask4) }
func nonZero8() { nonZero("nonZero8AVX2", 8, 2*vector, zeroMask8) }

// nonZero tests step elements, of bytes bytes together, at a time.
func nonZero(name string, step, bytes int, test zeroTest) {
	function(name, "func(mask, data *byte, n int) int", name+" needs whole steps of its loop.")
	mask, data, n := pointer("mask"), pointer("data"), pointer("n")
	count, zeros := GP64(), zero()
	XORQ(count, count)
	strips("loop", n, step, func() {
		m := test(data, zeros)
		advance(data, bytes)
		if step == 8 {
			XORL(U32(255), m)
			MOVB(m.As8(), Mem{Base: mask})
		} else {
			NOTL(m)
			MOVL(m, Mem{Base: mask})
		}
		advance(mask, step/8)
		POPCNTL(m, m)
		ADDQ(m.As64(), count)
	})
	Store(count, ReturnIndex(0))
	finish()
}
