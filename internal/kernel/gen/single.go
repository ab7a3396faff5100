package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The steps of float32 arithmetic, each with its operands in the order in which they are read and the result in a
// register of its own.

// Predicates of comparisons.
const (
	equal     = U8(0)
	less      = U8(1)
	unordered = U8(3)
	notLess   = U8(5)
)

func addPS(x, y VecVirtual) VecVirtual { z := YMM(); VADDPS(y, x, z); return z }
func subPS(x, y VecVirtual) VecVirtual { z := YMM(); VSUBPS(y, x, z); return z }
func mulPS(x, y VecVirtual) VecVirtual { z := YMM(); VMULPS(y, x, z); return z }
func divPS(x, y VecVirtual) VecVirtual { z := YMM(); VDIVPS(y, x, z); return z }
func andPS(x, y VecVirtual) VecVirtual { z := YMM(); VANDPS(y, x, z); return z }
func xorPS(x, y VecVirtual) VecVirtual { z := YMM(); VXORPS(y, x, z); return z }
func sqrtPS(x VecVirtual) VecVirtual   { z := YMM(); VSQRTPS(x, z); return z }

// maxPS: MAXPS returns its second source for zeros and for NaN. Computed in both orders, the results differ only in the
// sign of zero, where AND gives +0 if possible, and for NaN, which the comparison detects.
func maxPS(x, y VecVirtual) VecVirtual {
	z, w := YMM(), YMM()
	VMAXPS(y, x, z)
	VMAXPS(x, y, w)
	VANDPS(w, z, z)
	VCMPPS(unordered, y, x, w)
	VORPS(w, z, z)
	return z
}

// minPS is maxPS with OR, which gives -0 if possible.
func minPS(x, y VecVirtual) VecVirtual {
	z, w := YMM(), YMM()
	VMINPS(y, x, z)
	VMINPS(x, y, w)
	VORPS(w, z, z)
	VCMPPS(unordered, y, x, w)
	VORPS(w, z, z)
	return z
}

// reluPS has x as the second source, which is kept if it is NaN or -0.
func reluPS(x, zero VecVirtual) VecVirtual { z := YMM(); VMAXPS(x, zero, z); return z }

func leakyPS(x, alpha, zero VecVirtual) VecVirtual {
	z, negative := mulPS(x, alpha), YMM()
	VCMPPS(less, zero, x, negative)
	VBLENDVPS(negative, z, x, z)
	return z
}

func clipPS(x, lo, hi VecVirtual) VecVirtual {
	z := YMM()
	VMAXPS(x, lo, z)
	VMINPS(z, hi, z)
	return z
}

// hardSigmoidPS: s is alpha, beta, 0 and 1.
func hardSigmoidPS(x VecVirtual, s []VecVirtual) VecVirtual {
	return clipPS(addPS(mulPS(x, s[0]), s[1]), s[2], s[3])
}
