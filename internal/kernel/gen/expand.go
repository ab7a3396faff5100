package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// expander is the state of a loop: body writes eight elements for the mask in m and leaves the registers unchanged.
type expander struct {
	dst, values, table GPVirtual
	m                  GPVirtual
}

// expand emits a function that processes bytes of the mask until n are done or values is beyond last, after which fewer
// than eight elements remain.
func expand(name string, size int, ranks Mem, setup func() func(e expander)) {
	function(name, "func(dst, mask, values, last *byte, n int) (done, used int)",
		name+" processes n bytes of mask, or fewer when values passes last; used counts bytes.")
	dst, mask, values, last, n := pointer("dst"), pointer("mask"), pointer("values"), pointer("last"), pointer("n")
	table, first, start := GP64(), GP64(), GP64()
	LEAQ(ranks, table)
	MOVQ(mask, first)
	MOVQ(values, start)
	ADDQ(mask, n) // now the end of mask
	body := setup()
	Label("loop")
	CMPQ(mask, n)
	JGE(LabelRef("end"))
	CMPQ(values, last)
	JHI(LabelRef("end"))
	m := GP32()
	MOVBLZX(Mem{Base: mask}, m)
	body(expander{dst, values, table, m})
	INCQ(mask)
	advance(dst, 8*size)
	POPCNTL(m, m)
	SHLQ(U8(log2(size)), m.As64())
	ADDQ(m.As64(), values)
	JMP(LabelRef("loop"))
	Label("end")
	SUBQ(first, mask)
	SUBQ(start, values)
	Store(mask, Return("done"))
	Store(values, Return("used"))
	finish()
}

func log2(size int) (bits int) {
	for ; size > 1; size /= 2 {
		bits++
	}
	return bits
}

func expand1(ranks Mem) {
	expand("expand1AVX2", 1, ranks, func() func(e expander) {
		return func(e expander) {
			v, index := XMM(), XMM()
			VMOVQ(Mem{Base: e.values}, v)
			VMOVQ(Mem{Base: e.table, Index: e.m.As64(), Scale: 8}, index)
			VPSHUFB(index, v, v)
			VMOVQ(v, Mem{Base: e.dst})
		}
	})
}

func expand2(ranks Mem) {
	expand("expand2AVX2", 2, ranks, func() func(e expander) {
		one := constant(0x01000100).AsX()
		return func(e expander) {
			v, index, high := XMM(), XMM(), XMM()
			VMOVDQU(Mem{Base: e.values}, v)
			// Element i is bytes 2i and 2i+1; both are negative for no element.
			VPMOVSXBW(Mem{Base: e.table, Index: e.m.As64(), Scale: 8}, index)
			VPADDW(index, index, index)
			VPSLLW(U8(8), index, high)
			VPOR(high, index, index)
			VPOR(one, index, index)
			VPSHUFB(index, v, v)
			VMOVDQU(v, Mem{Base: e.dst})
		}
	})
}

func expand4(ranks Mem) {
	expand("expand4AVX2", 4, ranks, func() func(e expander) {
		return func(e expander) {
			v, index := YMM(), YMM()
			VMOVDQU(Mem{Base: e.values}, v)
			VPMOVSXBD(Mem{Base: e.table, Index: e.m.As64(), Scale: 8}, index)
			VPERMD(v, index, v)
			VPSRAD(U8(31), index, index)
			VPANDN(v, index, v)
			VMOVDQU(v, Mem{Base: e.dst})
		}
	})
}

func expand8(ranks Mem) {
	expand("expand8AVX2", 8, ranks, func() func(e expander) {
		zeros, one := zero(), constant64(1<<32)
		return func(e expander) {
			low, high, upper := GP32(), GP32(), GP64()
			MOVL(e.m, low)
			ANDL(U32(15), low)
			MOVL(e.m, high)
			SHRL(U8(4), high)
			expandFour8(Mem{Base: e.dst}, Mem{Base: e.values}, e.table, low, zeros, one)
			POPCNTL(low, low)
			LEAQ(Mem{Base: e.values, Index: low.As64(), Scale: 8}, upper)
			expandFour8(Mem{Base: e.dst, Disp: vector}, Mem{Base: upper}, e.table, high, zeros, one)
		}
	})
}

// expandFour8 expands the lower four bits of a mask.
func expandFour8(dst, values Mem, table, m GPVirtual, zeros, one VecVirtual) {
	v, index, none, high := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(values, v)
	VPMOVSXBQ(Mem{Base: table, Index: m.As64(), Scale: 8}, index)
	VPCMPGTQ(index, zeros, none)
	// Element i is 32-bit lanes 2i and 2i+1.
	VPADDQ(index, index, index)
	VPSLLQ(U8(32), index, high)
	VPOR(high, index, index)
	VPOR(one, index, index)
	VPERMD(v, index, v)
	VPANDN(v, none, v)
	VMOVDQU(v, dst)
}
