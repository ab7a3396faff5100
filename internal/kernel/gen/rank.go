package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func filterRange(compact Mem) {
	function("filterRangeAVX2", "func(out *uint32, x *float32, n int, lo, hi uint32) (below, taken int)",
		"filterRangeAVX2 may write up to 8 elements beyond those selected; n%8 == 0, lo and hi below 2^31.")
	out, x, n := pointer("out"), pointer("x"), pointer("n")
	lo, hi, mask, count := spread("lo"), spread("hi"), constant(magnitude), zero()
	table, start := GP64(), GP64()
	LEAQ(compact, table)
	MOVQ(out, start)
	strips("loop", n, 8, func() {
		v, low, high := YMM(), YMM(), YMM()
		VPAND(at(x, 0), mask, v)
		advance(x, vector)
		VPCMPGTD(v, lo, low)
		VPCMPGTD(hi, v, high)
		VPSUBD(low, count, count)
		VPOR(low, high, high)
		m := GP32()
		VMOVMSKPS(high, m)
		XORL(U32(255), m)
		compact4(v, m, table, out)
	})
	SUBQ(start, out)
	SHRQ(U8(2), out)
	Store(out, Return("taken"))
	below := fold(count, VPADDD3)
	Store(below.(GPVirtual).As64(), Return("below"))
	finish()
}

// compact4 stores the 32-bit lanes of v that m marks and advances out after them.
func compact4(v VecVirtual, m GPVirtual, table, out Register) {
	index, packed := YMM(), YMM()
	VPMOVZXBD(Mem{Base: table, Index: m.As64(), Scale: 8}, index)
	VPERMD(v, index, packed)
	VMOVDQU(packed, Mem{Base: out})
	skipStored(out, m, 4)
}

func zeroUpTo() {
	function("zeroUpToAVX2", "func(x *float32, n int, limit uint32)",
		"zeroUpToAVX2 needs n%8 == 0 and limit below 2^31.")
	x, n, limit, mask := pointer("x"), pointer("n"), spread("limit"), constant(magnitude)
	strips("loop", n, 8, func() {
		v, m := YMM(), YMM()
		VMOVDQU(at(x, 0), v)
		VPAND(mask, v, m)
		VPCMPGTD(limit, m, m)
		VPAND(m, v, v)
		VMOVDQU(v, at(x, 0))
		advance(x, vector)
	})
	finish()
}

func countMagnitude() {
	function("countMagnitudeAVX2", "func(x *float32, n int, b uint32) int",
		"countMagnitudeAVX2 needs n%8 == 0 and n below 2^31.")
	x, n, b, mask, count := pointer("x"), pointer("n"), spread("b"), constant(magnitude), zero()
	strips("loop", n, 8, func() {
		v := YMM()
		VPAND(at(x, 0), mask, v)
		VPCMPEQD(b, v, v)
		VPSUBD(v, count, count)
		advance(x, vector)
	})
	r := fold(count, VPADDD3)
	Store(r.(GPVirtual).As64(), ReturnIndex(0))
	finish()
}
