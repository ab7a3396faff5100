package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// roundShift is 3·2^22 as a float32: its sum with a quotient has the rounded quotient in its
// low bits.
const roundShift = 0x4b400000

const floorBits = 0xc9800000 // -2^20 as a float32

// coder holds the constants of quantization.
type coder struct{ floor, shift, lo, hi, low8, order VecVirtual }

func newCoder(packOrder Mem) coder {
	order := YMM()
	VMOVDQU(packOrder, order)
	return coder{
		floor: constant(floorBits),
		shift: constant(roundShift),
		lo:    spread16("lo"),
		hi:    spread16("hi"),
		low8:  constant(0x00ff00ff),
		order: order,
	}
}

// round leaves the bits of the shifted quotient. MAXPS returns its second source, the floor,
// for a NaN.
func (c coder) round(v VecVirtual) {
	VMAXPS(c.floor, v, v)
	VADDPS(c.shift, v, v)
}

// pack stores 32 integers as bytes.
func (c coder) pack(v []VecVirtual, dst Register) {
	VMOVDQU(c.join(v), Mem{Base: dst})
	advance(dst, vector)
}

// join saturates 32 integers to 16 bits, then to the range, and joins them as bytes in order.
func (c coder) join(v []VecVirtual) VecVirtual {
	// The packs are within 128-bit lanes: order brings the quarters into place.
	both := c.joinLanes(v)
	VPERMD(both, c.order, both)
	return both
}

// joinLanes is join in each lane.
func (c coder) joinLanes(v []VecVirtual) VecVirtual {
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	for _, w := range []VecVirtual{v[0], v[2]} {
		c.saturate(w)
	}
	VPACKUSWB(v[2], v[0], v[0])
	return v[0]
}

// saturate leaves in each 16-bit lane the byte that holds the value, signed or not.
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

// quantize also prefetches ahead bytes after x, once per cache line: a caller processes rows, and memory would idle
// during this row, which is cached.
func quantize(packOrder Mem) {
	function("quantizeAVX2", "func(dst *byte, x *float32, n, ahead int, scale float32, offset, lo, hi int32)",
		"quantizeAVX2 expects the zero point minus the bits of roundShift as offset; n%8 == 0.")
	dst, x, n, ahead := pointer("dst"), pointer("x"), pointer("n"), pointer("ahead")
	scale, offset, c := spread("scale"), spread("offset"), newCoder(packOrder)
	integers := func(i int) VecVirtual {
		v := YMM()
		VMOVUPS(at(x, i), v)
		VDIVPS(scale, v, v)
		c.round(v)
		VPADDD(offset, v, v)
		return v
	}
	strips("wide", n, 32, func() {
		PREFETCHT1(Mem{Base: x, Index: ahead, Scale: 1})
		PREFETCHT1(Mem{Base: x, Index: ahead, Scale: 1, Disp: 64})
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

func quantizeCols(name string, zeros bool, packOrder Mem) {
	signature, doc := "func(dst *byte, x *float32, n int, scale *float32, lo, hi int32)",
		" quantizes one row; n%8 == 0."
	if zeros {
		signature = "func(dst *byte, x *float32, n int, scale *float32, zero *int32, lo, hi int32)"
	}
	function(name, signature, name+doc)
	dst, x, n, scale := pointer("dst"), pointer("x"), pointer("n"), pointer("scale")
	columns := []Register{x, scale}
	var zero GPVirtual
	if zeros {
		zero = pointer("zero")
		columns = append(columns, zero)
	}
	c := newCoder(packOrder)
	integers := func(i int) VecVirtual {
		v := YMM()
		VMOVUPS(at(x, i), v)
		VDIVPS(at(scale, i), v, v)
		c.round(v)
		VPSUBD(c.shift, v, v)
		if zeros {
			VPADDD(at(zero, i), v, v)
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
