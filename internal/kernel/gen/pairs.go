package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A pair is eight float64 converted from eight float32: two chains of the same steps, which share the constants.
type pair [2]VecVirtual

func newPair() pair { return pair{YMM(), YMM()} }

func both(v VecVirtual) pair { return pair{v, v} }

// loadPair reads the i-th vector of eight float32 after p.
func loadPair(p Register, i int) pair {
	v := newPair()
	VCVTPS2PD(halfAt(p, 2*i), v[0])
	VCVTPS2PD(halfAt(p, 2*i+1), v[1])
	return v
}

// store rounds to float32.
func (v pair) store(p Register, i int) {
	for k := range v {
		x := XMM()
		VCVTPD2PSY(v[k], x)
		VMOVUPS(x, halfAt(p, 2*i+k))
	}
}

// A table is a variable of package kernel, an array of float64 that is used by twin and assembly.
type table string

func (t table) at(i int) VecVirtual {
	v := YMM()
	VBROADCASTSD(NewDataAddr(Symbol{Name: "·" + string(t)}, 8*i), v)
	return v
}

// spread64 fills all lanes with the float64 parameter.
func spread64(name string) VecVirtual {
	v := YMM()
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
	z := newPair()
	for i := range z {
		op(y[i], x[i], z[i])
	}
	return z
}

func VADDPD3(y, x, z Op) { VADDPD(y, x, z) }
func VSUBPD3(y, x, z Op) { VSUBPD(y, x, z) }
func VMULPD3(y, x, z Op) { VMULPD(y, x, z) }
func VDIVPD3(y, x, z Op) { VDIVPD(y, x, z) }
func VMAXPD3(y, x, z Op) { VMAXPD(y, x, z) }
func VMINPD3(y, x, z Op) { VMINPD(y, x, z) }
func VXORPD3(y, x, z Op) { VXORPD(y, x, z) }
func VORPD3(y, x, z Op)  { VORPD(y, x, z) }

// addProduct sets z to x·y+z, rounded once.
func addProduct(z, x, y pair) {
	for i := range z {
		VFMADD231PD(y[i], x[i], z[i])
	}
}

// horner is the polynomial whose n coefficients start at from in t, least power first.
func horner(x pair, t table, from, n int) pair {
	p := pair{t.at(from + n - 1), t.at(from + n - 1)}
	for k := n - 2; k >= 0; k-- {
		c := t.at(from + k)
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

func bound(k int) VecVirtual { return table("boundTable").at(k) }

// expPair is the twin's exp64. It overwrites x.
func expPair(x pair) pair {
	const t = table("expTable")
	log2e, shift, ln2 := t.at(0), t.at(1), t.at(2)
	shifted := pair{t.at(1), t.at(1)}
	addProduct(shifted, x, both(log2e))
	addProduct(x, sub(both(shift), shifted), both(ln2))
	p := horner(x, t, 3, 7)
	for i := range p {
		VPSLLQ(U8(52), shifted[i], shifted[i])
		VPADDQ(shifted[i], p[i], p[i])
	}
	return p
}
