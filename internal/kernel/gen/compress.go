package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const compressSignature = "func(out, data *byte, n int) int"

// compress emits a function that processes eight elements of size bytes at a time; setup returns the body of its loop.
func compress(name string, size int, compact Mem, setup func(out, data, table Register) func()) {
	function(name, compressSignature, name+" returns the bytes written, and may write a vector more; n%8 == 0.")
	out, data, n := pointer("out"), pointer("data"), pointer("n")
	table, start := GP64(), GP64()
	LEAQ(compact, table)
	MOVQ(out, start)
	body := setup(out, data, table)
	strips("loop", n, 8, func() {
		body()
		advance(data, 8*size)
	})
	SUBQ(start, out)
	Store(out, ReturnIndex(0))
	finish()
}

// invert8 turns a mask of eight zeros into one of eight values.
func invert8(m GPVirtual) GPVirtual {
	XORL(U32(255), m)
	return m
}

// skipStored advances out by as many elements of size bytes as m has bits.
func skipStored(out Register, m GPVirtual, size uint8) {
	POPCNTL(m, m)
	LEAQ(Mem{Base: out, Index: m.As64(), Scale: size}, out)
}

func compress1(compact Mem) {
	compress("compress1AVX2", 1, compact, func(out, data, table Register) func() {
		zeros := zero().AsX()
		return func() {
			v, index, m := XMM(), XMM(), GP32()
			VMOVQ(Mem{Base: data}, v)
			VPCMPEQB(v, zeros, index)
			VPMOVMSKB(index, m)
			MOVBLZX(m.As8(), m)
			invert8(m)
			VMOVQ(Mem{Base: table, Index: m.As64(), Scale: 8}, index)
			VPSHUFB(index, v, v)
			VMOVQ(v, Mem{Base: out})
			skipStored(out, m, 1)
		}
	})
}

func compress2(compact Mem) {
	compress("compress2AVX2", 2, compact, func(out, data, table Register) func() {
		zeros, one := zero().AsX(), constant(0x01000100).AsX()
		return func() {
			v, index, high, m := XMM(), XMM(), XMM(), GP32()
			VMOVDQU(Mem{Base: data}, v)
			VPCMPEQW(v, zeros, index)
			VPACKSSWB(index, index, index)
			VPMOVMSKB(index, m)
			MOVBLZX(m.As8(), m)
			invert8(m)
			// Element e is bytes 2e and 2e+1.
			VPMOVZXBW(Mem{Base: table, Index: m.As64(), Scale: 8}, index)
			VPADDW(index, index, index)
			VPSLLW(U8(8), index, high)
			VPOR(high, index, index)
			VPOR(one, index, index)
			VPSHUFB(index, v, v)
			VMOVDQU(v, Mem{Base: out})
			skipStored(out, m, 2)
		}
	})
}

func compress4(compact Mem) {
	compress("compress4AVX2", 4, compact, func(out, data, table Register) func() {
		zeros := zero()
		return func() {
			m := invert8(zeroMask4(data, zeros))
			v := YMM()
			VMOVDQU(at(data, 0), v)
			compact4(v, m, table, out)
		}
	})
}

func compress8(compact Mem) {
	compress("compress8AVX2", 8, compact, func(out, data, table Register) func() {
		zeros, one := zero(), constant64(1<<32)
		return func() {
			for half := range 2 {
				compactFour8(out, Mem{Base: data, Disp: half * vector}, table, zeros, one)
			}
		}
	})
}

func compactFour8(out Register, data Mem, table Register, zeros, one VecVirtual) {
	v, index, high, m := YMM(), YMM(), YMM(), GP32()
	VMOVDQU(data, v)
	VPCMPEQQ(v, zeros, index)
	VMOVMSKPD(index, m)
	XORL(U32(15), m)
	// Element e is 32-bit lanes 2e and 2e+1.
	VPMOVZXBQ(Mem{Base: table, Index: m.As64(), Scale: 8}, index)
	VPADDQ(index, index, index)
	VPSLLQ(U8(32), index, high)
	VPOR(high, index, index)
	VPOR(one, index, index)
	VPERMD(v, index, v)
	VMOVDQU(v, Mem{Base: out})
	skipStored(out, m, 8)
}
