package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// coder holds what turning quotients into codes needs.
type coder struct{ limit, negLimit, lo, hi, low8, order VecVirtual }

func newCoder() coder {
	return coder{
		limit:    constant(0x49800000), // 2^20
		negLimit: constant(0xc9800000),
		lo:       spread16("lo"),
		hi:       spread16("hi"),
		low8:     constant(0x00ff00ff),
		order:    pattern("packOrder", [8]uint32{0, 4, 1, 5, 2, 6, 3, 7}),
	}
}

// round turns quotients into integers. MINPS returns its second source for a NaN: the limit.
// CVTPS2DQ overflows to the minimum, so the limits come before it.
func (c coder) round(v VecVirtual) {
	VMINPS(c.limit, v, v)
	VMAXPS(c.negLimit, v, v)
	VCVTPS2DQ(v, v)
}

// pack saturates 32 integers to 16 bits, then to codes, and stores them as bytes in order.
func (c coder) pack(v []VecVirtual, dst Register) {
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	for _, w := range []VecVirtual{v[0], v[2]} {
		c.saturate(w)
	}
	VPACKUSWB(v[2], v[0], v[0])
	VPERMD(v[0], c.order, v[0])
	VMOVDQU(v[0], Mem{Base: dst})
	advance(dst, vector)
}

// saturate leaves in each 16-bit lane the byte that holds the code, signed or not.
func (c coder) saturate(w VecVirtual) {
	VPMINSW(c.hi, w, w)
	VPMAXSW(c.lo, w, w)
	VPAND(c.low8, w, w)
}

// pack8 is pack for one vector.
func (c coder) pack8(v VecVirtual, dst Register) {
	VPACKSSDW(v, v, v)
	c.saturate(v)
	VPACKUSWB(v, v, v)
	high := XMM()
	VEXTRACTI128(U8(1), v, high)
	VMOVD(v.AsX(), Mem{Base: dst})
	VMOVD(high, Mem{Base: dst, Disp: 4})
	advance(dst, 8)
}

func quantize() {
	function("quantizeAVX2", "func(dst *byte, x *float32, n int, scale float32, zero, lo, hi int32)",
		"quantizeAVX2 needs n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	scale, offset, c := spread("scale"), spread("zero"), newCoder()
	integers := func(i int) VecVirtual {
		v := YMM()
		VMOVUPS(at(x, i), v)
		VDIVPS(scale, v, v)
		c.round(v)
		VPADDD(offset, v, v)
		return v
	}
	strips("wide", n, 32, func() {
		v := []VecVirtual{integers(0), integers(1), integers(2), integers(3)}
		advance(x, 4*vector)
		c.pack(v, dst)
	})
	strips("narrow", n, 8, func() {
		v := integers(0)
		advance(x, vector)
		c.pack8(v, dst)
	})
	finish()
}

func quantizeCols(name string, zeros bool) {
	signature, doc := "func(dst *byte, x *float32, n int, scale *float32, lo, hi int32)", " codes one row; n%8 == 0."
	if zeros {
		signature = "func(dst *byte, x *float32, n int, scale *float32, zero *int32, lo, hi int32)"
	}
	function(name, signature, name+doc)
	dst, x, n, scale := pointer("dst"), pointer("x"), pointer("n"), pointer("scale")
	columns := []Register{x, scale}
	var offset GPVirtual
	if zeros {
		offset = pointer("zero")
		columns = append(columns, offset)
	}
	c := newCoder()
	integers := func(i int) VecVirtual {
		v := YMM()
		VMOVUPS(at(x, i), v)
		VDIVPS(at(scale, i), v, v)
		c.round(v)
		if zeros {
			VPADDD(at(offset, i), v, v)
		}
		return v
	}
	strips("wide", n, 32, func() {
		v := []VecVirtual{integers(0), integers(1), integers(2), integers(3)}
		advanceAll(columns, 4*vector)
		c.pack(v, dst)
	})
	strips("narrow", n, 8, func() {
		v := integers(0)
		advanceAll(columns, vector)
		c.pack8(v, dst)
	})
	finish()
}

func advanceAll(pointers []Register, bytes int) {
	for _, p := range pointers {
		advance(p, bytes)
	}
}
