package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gelu has the steps of geluGo, whose exponential is that of siluGo.
func gelu(w width) {
	name := "gelu" + w.name
	function(name, "func(dst, x *float32, n int)", name+" needs FMA; n is whole vectors.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	s := geluSteps{newSiluSteps(w)}
	strips("loop", n, w.bytes/4, func() {
		VMOVUPS(s.compute(w.loaded(x, 0)), w.at(dst, 0))
		advanceAll([]Register{x, dst}, w.bytes)
	})
	finish()
}

type geluSteps struct{ *siluSteps }

// Indices in millsTable: two bounds, a factor, and the coefficients.
const (
	millsLeast = iota
	millsGreatest
	minusHalf
	millsAbove
	millsBelow = millsAbove + 6
	millsEnd   = millsBelow + 7
)

func mills(i int) Mem { return NewDataAddr(Symbol{Name: "·millsTable"}, 4*i) }

// constant is an element of millsTable in all lanes.
func (s geluSteps) constant(i int) VecVirtual {
	v := s.new()
	VBROADCASTSS(mills(i), v)
	return v
}

func (s geluSteps) compute(x VecVirtual) VecVirtual {
	VMAXPS(x, s.constant(millsLeast), x)
	a := s.new()
	s.andNot(s.sign, x, a)
	VMINPS(a, s.constant(millsGreatest), a)
	square, lost, z, half := s.new(), s.new(), s.new(), s.constant(minusHalf)
	VMULPS(a, a, square)
	VMULPS(half, square, z)
	// a·a less its rounded value: the error, exact by a fused multiply-subtract.
	VMOVAPS(a, lost)
	VFMSUB213PS(square, a, lost)
	shifted, k := s.reduce(z)
	VFMADD231PS(half, lost, z)
	m := s.series(z)
	VMULPS(s.polynomial(a, millsAbove, millsBelow), m, m)
	VDIVPS(s.polynomial(a, millsBelow, millsEnd), m, m)
	if s.wide() {
		return s.finishWide(x, m, k)
	}
	return s.finishNarrow(x, m, shifted)
}

// polynomial has the coefficients from one index to another, least power first.
func (s geluSteps) polynomial(a VecVirtual, from, to int) VecVirtual {
	p := s.constant(to - 1)
	for i := to - 2; i >= from; i-- {
		if s.wide() {
			VFMADD213PS_BCST(mills(i), a, p)
		} else {
			VFMADD213PS(s.constant(i), a, p)
		}
	}
	return p
}

func (s geluSteps) finishWide(x, m, k VecVirtual) VecVirtual {
	y, negative := s.new(), K()
	VPTESTMD(s.sign, x, negative)
	VMULPS(m, x, y)
	VSCALEFPS(k, y, y)
	VSCALEFPS(k, m, m)
	VSUBPS(m, s.one, m)
	VMULPS(m, x, x)
	VBLENDMPS(y, x, negative, x)
	return x
}

func (s geluSteps) finishNarrow(x, m, shifted VecVirtual) VecVirtual {
	y := s.new()
	half, rest := s.powers(shifted)
	VMULPS(m, x, y)
	// 2^k as two powers, as in siluSteps.
	for _, v := range []VecVirtual{y, m} {
		VMULPS(half, v, v)
		VMULPS(rest, v, v)
	}
	VSUBPS(m, s.one, m)
	VMULPS(m, x, m)
	VBLENDVPS(x, y, m, y)
	return y
}
