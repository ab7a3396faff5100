package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A float64Function is a function of one element. prepare, before the loop, returns the body.
type float64Function struct {
	name    string
	prepare func(w width) (compute func(x pair) pair)
}

// functions are the steps of the twins, one by one.
func functions() []float64Function {
	return []float64Function{
		{"exp", exp},
		{"sigmoid", sigmoid},
		{"geluTanh", geluTanh},
		{"tanh", func(w width) func(pair) pair { return oddRatio(w, "tanhTable", 5, 6, tanhLeast) }},
		{"erf", func(w width) func(pair) pair { return oddRatio(w, "erfTable", 7, 6, erfLeast) }},
		{"softplus", softplus},
	}
}

func (f float64Function) write(w width) {
	name := f.name + w.name
	function(name, "func(dst, x *float32, n int)", name+" needs FMA and n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	compute := f.prepare(w)
	w.pairs(n, []Register{x, dst}, func(registers int) { compute(w.pairAt(x, registers)).store(dst) })
	finish()
}

// pairs runs body for n float32, a multiple of eight, and advances the pointers.
func (w width) pairs(n Register, pointers []Register, body func(registers int)) {
	loop := func(label string, registers int) {
		strips(label, n, registers*w.bytes/8, func() {
			body(registers)
			advanceAll(pointers, registers*w.bytes/2)
		})
	}
	loop("loop", 2)
	if w.wide() {
		loop("last", 1)
	}
}

func (w width) number(v float64) VecVirtual { return w.constant64(math.Float64bits(v)) }

func (w width) signBit() VecVirtual { return w.constant64(1 << 63) }

func exp(w width) func(x pair) pair {
	lo, hi := w.bound(expLeast), w.bound(expGreatest)
	return func(x pair) pair { return expPair(atMost(atLeast(x, lo), hi)) }
}

func sigmoid(w width) func(x pair) pair {
	lo, hi, sign, one := w.bound(sigmoidLeast), w.bound(sigmoidGreatest), w.signBit(), w.number(1)
	return func(x pair) pair {
		e := expPair(xor(atMost(atLeast(x, lo), hi), sign))
		return div(both(one), add(both(one), e))
	}
}

func geluTanh(w width) func(x pair) pair {
	const t = table("geluTable")
	lo, hi, sign, one := w.bound(geluLeast), w.bound(geluGreatest), w.signBit(), w.number(1)
	return func(x pair) pair {
		v := atLeast(x, lo)
		w := atMost(v, hi)
		u := mul(horner(mul(w, w), t, 0, 2), w)
		return div(v, add(both(one), expPair(xor(u, sign))))
	}
}

// oddRatio is x·P(x²)/Q(x²) with above and below coefficients in t, for x between two bounds.
func oddRatio(w width, t table, above, below, least int) func(x pair) pair {
	lo, hi := w.bound(least), w.bound(least+1)
	return func(x pair) pair {
		v := atMost(atLeast(x, lo), hi)
		z := mul(v, v)
		return div(mul(v, horner(z, t, 0, above)), horner(z, t, above, below))
	}
}

// logarithm handles the special cases of log64 at the end.
func logarithm(w width) func(x pair) pair {
	const sqrtHalf, bias = 0x3fe6a09e667f3bcd, 1024 << 52
	shift, biased := constant64(bias-sqrtHalf), constant64(bias)
	integer := constant64(0x4330000000000000) // 2^52, whose low bits count
	return func(x pair) pair {
		k, m := x.like(), x.like()
		for i := range x {
			VPADDQ(shift, x[i], k[i])
			VPSRLQ(U8(52), k[i], k[i])
			VPSLLQ(U8(52), k[i], m[i])
			VPSUBQ(m[i], x[i], m[i])
			VPADDQ(biased, m[i], m[i])
			VPOR(integer, k[i], k[i])
		}
		one := w.number(1)
		y := twiceAtanh(div(sub(m, both(one)), add(m, both(one))))
		addProduct(y, sub(k, both(w.number(1<<52+1024))), both(table("expTable").at(w, 2)))
		return logarithmEnds(x, y)
	}
}

// logarithmEnds writes NaN below zero, -Inf at zero, and x itself for Inf and NaN.
func logarithmEnds(x, y pair) pair {
	inf, minusInf, nothing := ymm.number(math.Inf(1)), ymm.number(math.Inf(-1)), zero()
	for i := range x {
		mask := YMM()
		VCMPPD(less, nothing, x[i], mask)
		VORPD(mask, y[i], y[i])
		VCMPPD(equal, nothing, x[i], mask)
		VBLENDVPD(mask, minusInf, y[i], y[i])
		VCMPPD(notLess, inf, x[i], mask)
		VBLENDVPD(mask, x[i], y[i], y[i])
	}
	return y
}

func twiceAtanh(s pair) pair { return mul(s, horner(mul(s, s), "atanhTable", 0, 6)) }

func softplus(w width) func(x pair) pair {
	lo, sign, two, nothing := w.bound(sigmoidLeast), w.signBit(), w.number(2), w.zero()
	return func(x pair) pair {
		t := expPair(atLeast(or(x, sign), lo))
		return add(atLeast(x, nothing), twiceAtanh(div(t, add(both(two), t))))
	}
}

// sincos stops before a vector with an element that requires quadrantFar, and returns the number of elements done. turn
// is the number of quadrants added.
func sincos(name string, turn uint64) {
	function(name, "func(dst, x *float32, n int) (done int)",
		name+" needs FMA and n%8 == 0; it stops where |x| reaches 2^32.")
	dst, x, n, done := pointer("dst"), pointer("x"), pointer("n"), GP64()
	limit, mask, quarter := constant(0x4f800000-1), constant(magnitude), constant64(turn)
	MOVQ(n, done)
	strips("loop", n, 8, func() {
		// Arguments beyond 2^32 need more digits of 2/π: the loop ends before them, and the twin does what is left.
		far, lanes := YMM(), GP32()
		VPAND(at(x, 0), mask, far)
		VPCMPGTD(limit, far, far)
		VMOVMSKPS(far, lanes)
		TESTL(lanes, lanes)
		JNZ(LabelRef("far"))
		sine(ymm.pairAt(x, 2), quarter, turn).store(dst)
		advanceAll([]Register{x, dst}, vector)
	})
	JMP(LabelRef("return"))
	Label("far")
	ADDQ(U8(8), n)
	Label("return")
	SUBQ(n, done)
	Store(done, Return("done"))
	finish()
}

func sine(x pair, quarter VecVirtual, turn uint64) pair {
	const t = table("sincosTable")
	shift := t.at(ymm, 1)
	q := t.each(x, 1)
	// The low bits of the shifted quotient are the quadrant: bit 0 selects the cosine, bit 1 the sign.
	addProduct(q, x, both(t.at(ymm, 0)))
	n, halfPi, rest := sub(q, both(shift)), t.at(ymm, 2), t.at(ymm, 3)
	for i := range x {
		VFNMADD231PD(halfPi, n[i], x[i])
		VFNMADD231PD(rest, n[i], x[i])
		if turn != 0 {
			VPADDQ(quarter, q[i], q[i])
		}
	}
	z := mul(x, x)
	v, c := mul(x, horner(z, t, 4, 5)), horner(z, t, 9, 5)
	for i := range v {
		odd := YMM()
		VPSLLQ(U8(63), q[i], odd)
		VBLENDVPD(odd, c[i], v[i], v[i])
		VPSRLQ(U8(1), q[i], q[i])
		VPSLLQ(U8(63), q[i], q[i])
		VXORPD(q[i], v[i], v[i])
	}
	return v
}
