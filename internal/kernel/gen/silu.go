package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// activationFamily is activations in float32.
func activationFamily() {
	for _, w := range []width{ymm, zmm} {
		silu(w)
		gelu(w)
	}
}

// siluSteps are the constants of siluGo, and the width of its registers. Those of entry are loaded where they are used
// if registers are few.
type siluSteps struct {
	width
	entry                   func(i int) VecVirtual
	least, shift, one, sign VecVirtual
}

// silu has the steps of siluGo.
func silu(w width) {
	name := "silu" + w.name
	function(name, "func(dst, x *float32, n int)", name+" needs FMA; n is whole vectors.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	s := newSiluSteps(w)
	strips("loop", n, w.bytes/4, func() {
		VMOVUPS(s.compute(w.loaded(x, 0)), w.at(dst, 0))
		advanceAll([]Register{x, dst}, w.bytes)
	})
	finish()
}

func newSiluSteps(w width) *siluSteps {
	load := func(i int) VecVirtual {
		v := w.new()
		VBROADCASTSS(NewDataAddr(Symbol{Name: "·siluTable"}, 4*i), v)
		return v
	}
	s := &siluSteps{width: w, entry: load, least: load(0), shift: load(2), one: load(5), sign: w.constant(1 << 31)}
	if w.wide() {
		// 32 registers hold the whole table; 16 do not.
		all := each(12, load)
		s.entry = func(i int) VecVirtual { return all[i] }
	}
	return s
}

// compute is one chain of instructions; those of several vectors overlap in the processor.
func (s *siluSteps) compute(x VecVirtual) VecVirtual {
	VMAXPS(x, s.least, x)
	z := s.new()
	s.or(x, s.sign, z)
	VMAXPS(z, s.least, z)
	shifted, k := s.reduce(z)
	p := s.series(z)
	if s.wide() {
		return s.finishWide(x, p, k)
	}
	return s.finishNarrow(x, p, shifted)
}

// reduce subtracts k·ln(2) from z; k is in the low bits of shifted, too.
func (s *siluSteps) reduce(z VecVirtual) (shifted, k VecVirtual) {
	shifted, k = s.new(), s.new()
	VMOVAPS(s.shift, shifted)
	VFMADD231PS(s.entry(1), z, shifted)
	VSUBPS(s.shift, shifted, k)
	VFNMADD231PS(s.entry(3), k, z)
	VFNMADD231PS(s.entry(4), k, z)
	return shifted, k
}

// series is e^z of what reduce leaves.
func (s *siluSteps) series(z VecVirtual) VecVirtual {
	p := s.new()
	VMOVAPS(s.entry(11), p)
	for i := 10; i >= 5; i-- {
		VFMADD213PS(s.entry(i), z, p)
	}
	return p
}

func (s *siluSteps) finishWide(x, p, k VecVirtual) VecVirtual {
	t, negative := s.new(), K()
	VPTESTMD(s.sign, x, negative)
	// VSCALEFPS rounds once, also if the result is subnormal.
	VSCALEFPS(k, p, t)
	VADDPS(s.one, t, t)
	VMULPS(p, x, negative, x)
	VDIVPS(t, x, x)
	VSCALEFPS(k, x, negative, x)
	return x
}

// finishNarrow multiplies by 2^k as two powers, so that a subnormal result is rounded once.
func (s *siluSteps) finishNarrow(x, p, shifted VecVirtual) VecVirtual {
	t, y := s.new(), s.new()
	half, rest := s.powers(shifted)
	VMULPS(half, p, t)
	VMULPS(rest, t, t)
	VADDPS(s.one, t, t)
	VMULPS(p, x, y)
	VBLENDVPS(x, y, x, y)
	VDIVPS(t, y, t)
	VMULPS(half, t, y)
	VMULPS(rest, y, y)
	VBLENDVPS(x, y, t, y)
	return y
}

// powers are two numbers whose product is 2^k.
func (s *siluSteps) powers(shifted VecVirtual) (half, rest VecVirtual) {
	half, rest = s.new(), s.new()
	VPSUBD(s.shift, shifted, rest) // k
	VPSRAD(U8(1), rest, half)
	VPSUBD(half, rest, rest)
	for _, power := range []VecVirtual{half, rest} {
		VPSLLD(U8(23), power, power)
		VPADDD(s.one, power, power)
	}
	return half, rest
}
