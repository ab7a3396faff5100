package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A balanceLoop is a loop over vectors of blocks with error feedback.
type balanceLoop struct {
	dst, x, scales, inverse Register
	n, stride               Register
	entries                 Register
	limits                  search
	most, least             VecVirtual // shifts
}

func newBalanceLoop() *balanceLoop {
	b := &balanceLoop{
		dst: pointer("dst"), x: pointer("x"), scales: pointer("scales"), inverse: pointer("inverse"), n: pointer("n"),
		stride: pointer("stride"),
		limits: limitsOf(pointer("limits")), entries: pointer("entries"),
		most: constant(math.Float32bits(1. / 16)), least: constant(math.Float32bits(-1. / 16)),
	}
	return b
}

// loop stores the indices of vectors. Body makes errors from shifts: it calls the function it gets.
func (b *balanceLoop) loop(body func(errors func(shift VecVirtual) VecVirtual)) {
	Label("block")
	left := GP64()
	MOVQ(b.stride, left)
	Label("vector")
	body(b.errors)
	advance(b.dst, 8)
	advance(b.x, vector)
	SUBQ(U32(vector), left)
	JNZ(LabelRef("vector"))
	advance(b.inverse, 4)
	advance(b.scales, 4)
	DECQ(b.n)
	JNZ(LabelRef("block"))
	finish()
}

// errors are those of a vector of x with a shift, whose register is changed.
func (b *balanceLoop) errors(shift VecVirtual) VecVirtual {
	x, by, y := YMM(), YMM(), YMM()
	VMOVUPS(at(b.x, 0), x)
	VBROADCASTSS(Mem{Base: b.inverse}, by)
	VMULPS(by, shift, shift)
	VMAXPS(b.least, shift, shift)
	VMINPS(b.most, shift, shift)
	VCMPPS(U8(4), zero(), x, y) // 4: not equal
	VANDPS(y, shift, shift)
	VMULPS(by, x, y)
	VADDPS(shift, y, y)
	index := b.limits.nearest(y)
	e := lookup16(b.entries, index)
	storeBytes(index, b.dst)
	VBROADCASTSS(Mem{Base: b.scales}, by)
	VMULPS(by, e, e)
	VSUBPS(x, e, e)
	return e
}

const balanceSignature = "func(dst *byte, x, scales, inverse *float32, n, stride int, limits, entries *float32, " +
	"carry *float32"

func balanceRow() {
	function("balanceRowAVX2", balanceSignature+", part float32)",
		"balanceRowAVX2 has n > 0 blocks of stride bytes, whole vectors.")
	b, carry, part := newBalanceLoop(), pointer("carry"), spread("part")
	b.loop(func(errors func(VecVirtual) VecVirtual) {
		sum := YMM()
		VMULPS(at(carry, 0), part, sum)
		e := errors(sum)
		VADDPS(at(carry, 0), e, e)
		VMOVUPS(e, at(carry, 0))
		advance(carry, vector)
	})
}

func balanceRun() {
	function("balanceRunAVX2", balanceSignature+")",
		"balanceRunAVX2 has n > 0 blocks of stride bytes, whole vectors, of one carry.")
	b, carry, sum := newBalanceLoop(), pointer("carry"), YMM()
	part := constant(math.Float32bits(-1. / 8))
	VBROADCASTSS(Mem{Base: carry}, sum)
	b.loop(func(errors func(VecVirtual) VecVirtual) {
		shift, other := YMM(), YMM()
		VMULPS(part, sum, shift)
		e := errors(shift)
		VPERM2F128(U8(1), e, e, other) // sums of halves, in all lanes
		VADDPS(other, e, e)
		VPERMILPS(U8(0x4e), e, other)
		VADDPS(other, e, e)
		VPERMILPS(U8(0xb1), e, other)
		VADDPS(other, e, e)
		VADDPS(e, sum, sum)
		VMOVSS(sum.AsX(), Mem{Base: carry})
	})
}
