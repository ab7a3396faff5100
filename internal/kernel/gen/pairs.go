package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A pair is eight float64 converted from eight float32 in two registers of AVX2, or 16 in two of AVX-512 or eight in
// one: chains of the same steps, which share the constants. As an operand, one register is a constant for all of the
// other pair.
type pair []VecVirtual

func (w width) newPair(registers int) pair {
	return each(registers, func(int) VecVirtual { return w.new() })
}

// like is a new pair of as many registers.
func (v pair) like() pair { return v.width().newPair(len(v)) }

func (v pair) width() width {
	if v[0].Size() == uint(zmm.bytes) {
		return zmm
	}
	return ymm
}

func (v pair) of(i int) VecVirtual { return v[i%len(v)] }

func both(v VecVirtual) pair { return pair{v} }

// pairAt reads float32 for a number of registers from p on.
func (w width) pairAt(p Register, registers int) pair {
	v := w.newPair(registers)
	for i := range v {
		VCVTPS2PD(Mem{Base: p, Disp: i * w.bytes / 2}, v[i])
	}
	return v
}

// store rounds to float32.
func (v pair) store(p Register) {
	w := v.width()
	for i := range v {
		to := Mem{Base: p, Disp: i * w.bytes / 2}
		if w.wide() {
			y := YMM()
			VCVTPD2PS(v[i], y)
			VMOVUPS(y, to)
			continue
		}
		x := XMM()
		VCVTPD2PSY(v[i], x)
		VMOVUPS(x, to)
	}
}

// A table is a variable of package kernel, an array of float64 that is used by twin and assembly.
type table string

func (t table) at(w width, i int) VecVirtual {
	v := w.new()
	VBROADCASTSD(NewDataAddr(Symbol{Name: "·" + string(t)}, 8*i), v)
	return v
}

// each is a coefficient for each register of a pair like v.
func (t table) each(v pair, i int) pair {
	return each(len(v), func(int) VecVirtual { return t.at(v.width(), i) })
}

// spread64 fills all lanes with the float64 parameter.
func (w width) spread64(name string) VecVirtual {
	v := w.new()
	VBROADCASTSD(parameter(name), v)
	return v
}

func add(x, y pair) pair { return lanewise(VADDPD3, x, y) }
func sub(x, y pair) pair { return lanewise(VSUBPD3, x, y) }
func mul(x, y pair) pair { return lanewise(VMULPD3, x, y) }
func div(x, y pair) pair { return lanewise(VDIVPD3, x, y) }

// atLeast and atMost have x as the second source, which is kept if it is NaN.
func atLeast(x pair, lo VecVirtual) pair { return lanewise(VMAXPD3, both(lo), x) }
func atMost(x pair, hi VecVirtual) pair  { return lanewise(VMINPD3, both(hi), x) }

func xor(x pair, y VecVirtual) pair { return lanewise(VXORPD3, x, both(y)) }
func or(x pair, y VecVirtual) pair  { return lanewise(VORPD3, x, both(y)) }

func lanewise(op func(y, x, z Op), x, y pair) pair {
	z := x.like()
	if len(y) > len(x) {
		z = y.like()
	}
	for i := range z {
		op(y.of(i), x.of(i), z[i])
	}
	return z
}

func VADDPD3(y, x, z Op) { VADDPD(y, x, z) }
func VSUBPD3(y, x, z Op) { VSUBPD(y, x, z) }
func VMULPD3(y, x, z Op) { VMULPD(y, x, z) }
func VDIVPD3(y, x, z Op) { VDIVPD(y, x, z) }
func VMAXPD3(y, x, z Op) { VMAXPD(y, x, z) }
func VMINPD3(y, x, z Op) { VMINPD(y, x, z) }

// The logic of AVX-512F has integers.
func VXORPD3(y, x, z Op) { logic(VXORPD, VPXORQ, y, x, z) }
func VORPD3(y, x, z Op)  { logic(VORPD, VPORQ, y, x, z) }

func logic(narrow, wide func(...Op), y, x, z Op) {
	if (pair{z.(VecVirtual)}).width().wide() {
		wide(y, x, z)
		return
	}
	narrow(y, x, z)
}

// addProduct sets z to x·y+z, rounded once.
func addProduct(z, x, y pair) {
	for i := range z {
		VFMADD231PD(y.of(i), x.of(i), z[i])
	}
}

// horner is the polynomial whose n coefficients start at from in t, least power first.
func horner(x pair, t table, from, n int) pair {
	p := t.each(x, from+n-1)
	for k := n - 2; k >= 0; k-- {
		c := t.at(x.width(), from+k)
		for i := range p {
			VFMADD213PD(c, x[i], p[i])
		}
	}
	return p
}

// Indices in boundTable.
const (
	expLeast = iota
	expGreatest
	sigmoidLeast
	sigmoidGreatest
	geluLeast
	geluGreatest
	tanhLeast
	tanhGreatest
	erfLeast
	erfGreatest
)

func (w width) bound(k int) VecVirtual { return table("boundTable").at(w, k) }

// expPair is the twin's exp64. It overwrites x.
func expPair(x pair) pair {
	const t = table("expTable")
	w := x.width()
	log2e, shift, ln2 := t.at(w, 0), t.at(w, 1), t.at(w, 2)
	shifted := t.each(x, 1)
	addProduct(shifted, x, both(log2e))
	addProduct(x, sub(both(shift), shifted), both(ln2))
	p := horner(x, t, 3, 7)
	// The low bits of the shifted quotient are k: a shift moves them into the exponent.
	for i := range p {
		VPSLLQ(U8(52), shifted[i], shifted[i])
		VPADDQ(shifted[i], p[i], p[i])
	}
	return p
}
