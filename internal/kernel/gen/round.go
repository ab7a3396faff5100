package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func roundFamily() {
	roundSearch(ymm)
	roundSearch(zmm)
	roundErrors()
}

// The predicates of VCMPPS.
const (
	greaterOrEqual    = 29
	lessOrEqual       = 18
	notGreaterOrEqual = 25 // also of NaN
)

// compare compares the lanes of a and b.
func (w width) compare(predicate uint8, a, b VecVirtual) Register {
	if w.wide() {
		k := K()
		VCMPPS(U8(predicate), b, a, k)
		return k
	}
	y := w.new()
	VCMPPS(U8(predicate), b, a, y)
	return y
}

// choose is the lanes of yes where the comparison holds, else those of no.
func (w width) choose(holds Register, yes, no, to VecVirtual) {
	if w.wide() {
		VBLENDMPS(yes, no, holds, to)
	} else {
		VBLENDVPS(holds, yes, no, to)
	}
}

// nearest rounds to integers, half to even.
func (w width) nearest(v VecVirtual) {
	if w.wide() {
		VRNDSCALEPS(U8(0), v, v)
	} else {
		VROUNDPS(U8(0), v, v)
	}
}

// spread fills all lanes with the i-th float32 after p.
func (w width) spread(p Register, i int) VecVirtual {
	v := w.new()
	VBROADCASTSS(Mem{Base: p, Disp: 4 * i}, v)
	return v
}

// The fields of roundSpace and of roundState, see roundsearch.go.
const (
	spaceLow = iota
	spaceHigh
	spaceMiddle
	spaceLowest
	spaceLargest
	spaceLevels
)

const (
	stateLow = iota
	stateHigh
	stateLeast
	stateScale
	stateZero
)

// searchRegisters are the registers of roundSearch.
type searchRegisters struct {
	width
	state, space              Register
	inverse, scale, low, high VecVirtual
}

// field is the i-th field of roundState, whose fields are arrays of 16.
func (s searchRegisters) field(i int) Mem { return Mem{Base: s.state, Disp: i * panelBytes} }

func (s searchRegisters) load(i int) VecVirtual {
	v := s.new()
	VMOVUPS(s.field(i), v)
	return v
}

// roundSearch processes the columns of one register. Products are rounded before they are added, like in its twin.
func roundSearch(w width) {
	function("roundSearch"+w.name, "func(state, space, x *float32, stride int, weight *float32, rows int, fractions "+
		"*float32, n, refits int, symmetric bool)",
		"roundSearch"+w.name+" finds the scales of one register of columns; stride in bytes, and rows, n and refits not 0.")
	s := searchRegisters{w, pointer("state"), pointer("space"), w.new(), w.new(), w.new(), w.new()}
	s.ranges()
	VMOVUPS(w.constant(0x7fc00000), s.field(stateLeast)) // NaN: the first scales are better
	fractions, n := pointer("fractions"), pointer("n")
	Label("fraction")
	s.start(fractions)
	refits := pointer("refits")
	Label("refit")
	s.refit()
	DECQ(refits)
	JNZ(LabelRef("refit"))
	advance(fractions, 4)
	DECQ(n)
	JNZ(LabelRef("fraction"))
	finish()
}

// ranges stores those of the columns, extended to 0.
func (s searchRegisters) ranges() {
	x, stride, rows := pointer("x"), pointer("stride"), pointer("rows")
	low, high := s.zero(), s.zero()
	Label("range")
	VMINPS(Mem{Base: x}, low, low)
	VMAXPS(Mem{Base: x}, high, high)
	ADDQ(stride, x)
	DECQ(rows)
	JNZ(LabelRef("range"))
	VMOVUPS(low, s.field(stateLow))
	VMOVUPS(high, s.field(stateHigh))
}

// start sets the scales and zero points for a fraction of the ranges.
func (s searchRegisters) start(fraction Register) {
	low, high, symmetric := s.spread(fraction, 0), s.new(), GP8()
	VMULPS(s.field(stateHigh), low, high)
	VMULPS(s.field(stateLow), low, low)
	zero, negated := s.new(), s.zero()
	VSUBPS(low, negated, negated)
	Load(Param("symmetric"), symmetric)
	TESTB(symmetric, symmetric)
	JZ(LabelRef("asymmetric"))
	below, levels := s.compare(greaterOrEqual, negated, high), s.new()
	s.choose(below, s.spread(s.space, spaceLowest), s.spread(s.space, spaceLargest), levels)
	s.choose(below, low, high, s.scale)
	VDIVPS(levels, s.scale, s.scale)
	VBROADCASTSS(Mem{Base: s.space, Disp: 4 * spaceMiddle}, zero)
	JMP(LabelRef("started"))
	Label("asymmetric")
	VSUBPS(low, high, s.scale)
	VDIVPS(s.spread(s.space, spaceLevels), s.scale, s.scale)
	VDIVPS(s.scale, negated, zero)
	s.nearest(zero)
	VADDPS(s.spread(s.space, spaceLow), zero, zero)
	VMAXPS(s.spread(s.space, spaceLow), zero, zero)
	VMINPS(s.spread(s.space, spaceHigh), zero, zero)
	Label("started")
	VDIVPS(s.scale, s.constant(0x3f800000), s.inverse)
	VSUBPS(zero, s.spread(s.space, spaceLow), s.low)
	VSUBPS(zero, s.spread(s.space, spaceHigh), s.high)
}

// refit keeps the scales that are better than those before, and continues with the optimal scales for their quantized
// values.
func (s searchRegisters) refit() {
	cost, dot, square := s.sums()
	least, zero := s.load(stateLeast), s.spread(s.space, spaceLow)
	better := s.compare(notGreaterOrEqual, cost, least)
	VSUBPS(s.low, zero, zero)
	s.keep(better, cost, stateLeast)
	s.keep(better, s.scale, stateScale)
	s.keep(better, zero, stateZero)
	VDIVPS(square, dot, dot)
	magnitude, inverse := s.new(), s.new()
	s.and(s.constant(0x7fffffff), dot, magnitude)
	// Beyond these bounds the scale or its inverse would be subnormal. NaN fulfils neither comparison.
	large := s.compare(greaterOrEqual, magnitude, s.constant(1<<23)) // 2^-126
	small := s.compare(lessOrEqual, magnitude, s.constant((127+126)<<23))
	VDIVPS(dot, s.constant(0x3f800000), inverse)
	for _, v := range [][2]VecVirtual{{dot, s.scale}, {inverse, s.inverse}} {
		s.choose(large, v[0], v[1], v[0])
		s.choose(small, v[0], v[1], v[1])
	}
}

// keep replaces the lanes of a field that are better.
func (s searchRegisters) keep(better Register, v VecVirtual, field int) {
	t := s.load(field)
	s.choose(better, v, t, t)
	VMOVUPS(t, s.field(field))
}

// sums are those over the rows: the weighted squared errors, and the products of quantized values with x and with
// themselves.
func (s searchRegisters) sums() (cost, dot, square VecVirtual) {
	cost, dot, square = s.zero(), s.zero(), s.zero()
	x, stride, weight, rows := pointer("x"), pointer("stride"), pointer("weight"), pointer("rows")
	Label("row")
	v, q, t := s.new(), s.new(), s.new()
	w := s.spread(weight, 0)
	VMOVUPS(Mem{Base: x}, v)
	VMULPS(s.inverse, v, q)
	s.nearest(q)
	VMAXPS(s.low, q, q)
	VMINPS(s.high, q, q)
	VMULPS(s.scale, q, t)
	VSUBPS(t, v, t)
	VMULPS(t, t, t)
	VMULPS(w, t, t)
	VADDPS(t, cost, cost)
	VMULPS(q, w, w)
	VMULPS(v, w, v)
	VADDPS(v, dot, dot)
	VMULPS(q, w, w)
	VADDPS(w, square, square)
	ADDQ(stride, x)
	advance(weight, 4)
	DECQ(rows)
	JNZ(LabelRef("row"))
	return cost, dot, square
}

// roundErrors rounds eight columns at a time. The product is rounded before it is subtracted, like in its twin.
func roundErrors() {
	function("roundErrorsAVX2", "func(dst *byte, errors, x, w *float32, n int, scale *float32, zero *int32, lo, hi int32)",
		"roundErrorsAVX2 quantizes x, and subtracts the dequantized values from w; n%8 == 0.")
	dst, n, zero := pointer("dst"), pointer("n"), pointer("zero")
	errors, x, w, scale := pointer("errors"), pointer("x"), pointer("w"), pointer("scale")
	lowest, highest, one, byteOf := spread("lo"), spread("hi"), constant(0x3f800000), constant(0xff)
	strips("columns", n, 8, func() {
		q, bound, t := YMM(), YMM(), YMM()
		VDIVPS(at(scale, 0), one, q)
		VMULPS(at(x, 0), q, q)
		VROUNDPS(U8(0), q, q)
		VPSUBD(at(zero, 0), lowest, bound)
		VCVTDQ2PS(bound, bound)
		VMAXPS(bound, q, q)
		VPSUBD(at(zero, 0), highest, bound)
		VCVTDQ2PS(bound, bound)
		VMINPS(bound, q, q)
		VMULPS(at(scale, 0), q, t)
		VMOVUPS(at(w, 0), bound)
		VSUBPS(t, bound, t)
		VMOVUPS(t, at(errors, 0))
		VCVTPS2DQ(q, q)
		VPADDD(at(zero, 0), q, q)
		VPAND(byteOf, q, q)
		half := XMM()
		VEXTRACTI128(U8(1), q, half)
		VPACKSSDW(half, q.AsX(), half)
		VPACKUSWB(half, half, half)
		VMOVQ(half, Mem{Base: dst})
		advanceAll([]Register{errors, x, w, scale, zero}, vector)
		advance(dst, 8)
	})
	finish()
}
