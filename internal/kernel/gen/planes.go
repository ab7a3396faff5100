package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// planesFamily splits elements of 2 and 4 bytes into planes of their bytes, and merges them. A rotation is two shifts
// by parameters; shifts by the width of an element give 0, so that 0 and the width rotate nothing.
func planesFamily() {
	splitPlanes2()
	mergePlanes2()
	splitPlanes4()
	mergePlanes4()
}

const planeParameters = "n, left, right int)"

// A rotation has the counts of two shifts.
type rotation struct{ left, right VecVirtual }

func newRotation() rotation {
	r := rotation{XMM(), XMM()}
	VMOVQ(Load(Param("left"), GP64()), r.left)
	VMOVQ(Load(Param("right"), GP64()), r.right)
	return r
}

func (r rotation) words(v VecVirtual) {
	t := YMM()
	VPSRLW(r.right, v, t)
	VPSLLW(r.left, v, v)
	VPOR(t, v, v)
}

func (r rotation) doubles(v VecVirtual) {
	t := YMM()
	VPSRLD(r.right, v, t)
	VPSLLD(r.left, v, v)
	VPOR(t, v, v)
}

// planePointers are the parameters p0, p1 and so on.
func planePointers(n int) (p []Register) {
	for i := range n {
		p = append(p, pointer(fmt.Sprintf("p%d", i)))
	}
	return p
}

// advancePlanes advances each plane by 32 elements.
func advancePlanes(p []Register) {
	for _, r := range p {
		advance(r, vector)
	}
}

// loadVectors loads n vectors after p.
func loadVectors(p Register, n int) (v []VecVirtual) {
	for i := range n {
		y := YMM()
		VMOVDQU(at(p, i), y)
		v = append(v, y)
	}
	return v
}

// joinHalves joins the lower or upper halves of a and b.
func joinHalves(a, b VecVirtual, upper bool) VecVirtual {
	y, from := YMM(), U8(0x20)
	if upper {
		from = 0x31
	}
	VPERM2I128(from, b, a, y)
	return y
}

func splitPlanes2() {
	function("splitPlanes2AVX2", "func(p0, p1, src *byte, "+planeParameters,
		"splitPlanes2AVX2 rotates and splits n elements, a multiple of 32.")
	p, src, n := planePointers(2), pointer("src"), pointer("n")
	r, low := newRotation(), constant(0x00ff00ff)
	strips("n", n, vector, func() {
		v := loadVectors(src, 2)
		var even, odd [2]VecVirtual
		for i := range v {
			r.words(v[i])
			even[i], odd[i] = YMM(), YMM()
			VPAND(low, v[i], even[i])
			VPSRLW(U8(8), v[i], odd[i])
		}
		for i, b := range [][2]VecVirtual{even, odd} {
			VPACKUSWB(b[1], b[0], b[0])
			VPERMQ(U8(0xd8), b[0], b[0])
			VMOVDQU(b[0], at(p[i], 0))
		}
		advancePlanes(p)
		advance(src, 2*vector)
	})
	finish()
}

func mergePlanes2() {
	function("mergePlanes2AVX2", "func(dst, p0, p1 *byte, "+planeParameters,
		"mergePlanes2AVX2 merges and rotates n elements, a multiple of 32.")
	dst, p, n := pointer("dst"), planePointers(2), pointer("n")
	r := newRotation()
	strips("n", n, vector, func() {
		a, b := interleaveBytes(p[0], p[1])
		for i, v := range []VecVirtual{joinHalves(a, b, false), joinHalves(a, b, true)} {
			r.words(v)
			VMOVDQU(v, at(dst, i))
		}
		advancePlanes(p)
		advance(dst, 2*vector)
	})
	finish()
}

// interleaveBytes interleaves two planes, in each half of a vector the first 8 elements and the other 8.
func interleaveBytes(p, q Register) (low, high VecVirtual) {
	x, y := YMM(), YMM()
	low, high = YMM(), YMM()
	VMOVDQU(at(p, 0), x)
	VMOVDQU(at(q, 0), y)
	VPUNPCKLBW(y, x, low)
	VPUNPCKHBW(y, x, high)
	return low, high
}

func splitPlanes4() {
	function("splitPlanes4AVX2", "func(p0, p1, p2, p3, src *byte, "+planeParameters,
		"splitPlanes4AVX2 rotates and splits n elements, a multiple of 32.")
	p, src, n := planePointers(4), pointer("src"), pointer("n")
	r, bytes, order := newRotation(), YMM(), YMM()
	VMOVDQU(words("planeBytes", 0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703, 0x0c080400, 0x0d090501, 0x0e0a0602,
		0x0f0b0703), bytes)
	VMOVDQU(words("planeOrder", 0, 4, 1, 5, 2, 6, 3, 7), order)
	strips("n", n, vector, func() {
		v := loadVectors(src, 4)
		for _, y := range v { // the quarters are 8 bytes of each plane
			r.doubles(y)
			VPSHUFB(bytes, y, y)
			VPERMD(y, order, y)
		}
		// Eight bytes of a plane in each quarter: unpacking and joining halves puts four vectors' quarters of a plane
		// together.
		even, odd := [2]VecVirtual{YMM(), YMM()}, [2]VecVirtual{YMM(), YMM()}
		for i := range 2 {
			VPUNPCKLQDQ(v[2*i+1], v[2*i], even[i])
			VPUNPCKHQDQ(v[2*i+1], v[2*i], odd[i])
		}
		for i, y := range []VecVirtual{joinHalves(even[0], even[1], false), joinHalves(odd[0], odd[1], false),
			joinHalves(even[0], even[1], true), joinHalves(odd[0], odd[1], true)} {
			VMOVDQU(y, at(p[i], 0))
		}
		advancePlanes(p)
		advance(src, 4*vector)
	})
	finish()
}

func mergePlanes4() {
	function("mergePlanes4AVX2", "func(dst, p0, p1, p2, p3 *byte, "+planeParameters,
		"mergePlanes4AVX2 merges and rotates n elements, a multiple of 32.")
	dst, p, n := pointer("dst"), planePointers(4), pointer("n")
	r := newRotation()
	strips("n", n, vector, func() {
		var low, high, quads [2]VecVirtual
		low[0], low[1] = interleaveBytes(p[0], p[1])
		high[0], high[1] = interleaveBytes(p[2], p[3])
		var out [4]VecVirtual
		for i := range 2 { // 8 elements of each half of the planes
			quads[0], quads[1] = YMM(), YMM()
			VPUNPCKLWD(high[i], low[i], quads[0])
			VPUNPCKHWD(high[i], low[i], quads[1])
			out[i], out[2+i] = joinHalves(quads[0], quads[1], false), joinHalves(quads[0], quads[1], true)
		}
		for i, y := range out {
			r.doubles(y)
			VMOVDQU(y, at(dst, i))
		}
		advancePlanes(p)
		advance(dst, 4*vector)
	})
	finish()
}
