package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// codebookFamily searches the entries of codebooks and looks them up.
func codebookFamily() {
	blockPeaks()
	searchScale()
	nearestEntry()
	lookups()
}

// blockPeaks reduces eight blocks at a time: a tree of maxima of halves, which ends with one block in each lane.
func blockPeaks() {
	function("blockPeaksAVX2", "func(dst *uint32, x *float32, n, stride int)", "blockPeaksAVX2 has n%8 == 0 blocks of stride bytes, whole vectors.")
	dst, x, n, stride, mask := pointer("dst"), pointer("x"), pointer("n"), pointer("stride"), constant(magnitude)
	strips("blocks", n, 8, func() {
		var v [8]VecVirtual
		p, left := GP64(), GP64()
		for i := range v {
			v[i] = zero()
		}
		MOVQ(x, p)
		MOVQ(stride, left)
		Label("chunk")
		row, t := GP64(), YMM()
		MOVQ(p, row)
		for i := range v {
			VPAND(Mem{Base: row}, mask, t)
			VPMAXUD(t, v[i], v[i])
			ADDQ(stride, row)
		}
		advance(p, vector)
		SUBQ(U32(vector), left)
		JNZ(LabelRef("chunk"))
		for step := 1; step < 8; step *= 2 {
			for i := 0; i < 8; i += 2 * step {
				a, b := v[i], v[i+step]
				switch step {
				case 1: // lanes a b a b
					VPUNPCKLDQ(b, a, t)
					VPUNPCKHDQ(b, a, a)
				case 2: // lanes a b c d
					VPUNPCKLQDQ(b, a, t)
					VPUNPCKHQDQ(b, a, a)
				case 4:
					VPERM2I128(U8(0x20), b, a, t)
					VPERM2I128(U8(0x31), b, a, a)
				}
				VPMAXUD(t, a, a)
			}
		}
		VMOVDQU(v[0], at(dst, 0))
		advance(dst, vector)
		LEAQ(Mem{Base: x, Index: stride, Scale: 8}, x)
	})
	finish()
}

// A search8 finds the nearest of 16 entries of 8 bits for 32 numbers at a time: four comparisons, each with the limit that the bits known
// select.
type search8 struct {
	limits    [4]VecVirtual
	entries   VecVirtual
	ones, max Mem
}

func searchScale() {
	function("searchScaleAVX2", "func(magnitudes *byte, x *float32, n, stride int, inverse, square *float32, limits *int8)",
		"searchScaleAVX2 has n%8 == 0 blocks of stride bytes, whole vectors; the entries are after the limits.")
	magnitudes, x, n, stride := pointer("magnitudes"), pointer("x"), pointer("n"), pointer("stride")
	inverse, square, limits := pointer("inverse"), pointer("square"), pointer("limits")
	s := search8{entries: YMM(), ones: words("codebookOnes", repeated(0x00010001)...), max: words("codebookMax", repeated(0x7f7f7f7f)...)}
	for i := range s.limits {
		s.limits[i] = YMM()
		VBROADCASTI128(Mem{Base: limits, Disp: 16 * i}, s.limits[i])
	}
	VBROADCASTI128(Mem{Base: limits, Disp: 64}, s.entries)
	VPSHUFB(zero(), s.limits[0], s.limits[0])
	scales, best, least := AllocLocal(vector), AllocLocal(vector), AllocLocal(vector) // spilled: 16 registers are too few
	strips("blocks", n, 8, func() {
		at := YMM()
		VPMOVZXBD(Mem{Base: magnitudes}, at) // magnitude m is at m+1, and the first one tried is m-1
		VMOVDQU(at, best)
		VMOVUPS(constant(0x7f800000), least)
		steps := GP64()
		MOVQ(U32(5), steps)
		Label("step")
		inv, mask := YMM(), YMM()
		VPCMPEQD(mask, mask, mask)
		VGATHERDPS(mask, Mem{Base: inverse, Index: at, Scale: 4}, inv)
		VMOVUPS(inv, scales)
		sums := s.sums(x, stride, scales)
		sq, all := YMM(), YMM()
		VPCMPEQD(all, all, all)
		VGATHERDPS(all, Mem{Base: square, Index: at, Scale: 4}, sq)
		one := YMM()
		VPCMPEQD(one, one, one)
		VPADDD(one, at, one) // m
		for sign, sum := range sums {
			less, was := YMM(), YMM()
			VMOVUPS(least, was)
			VCVTDQ2PS(sum, sum)
			VMULPS(sq, sum, sum)
			VCMPPS(U8(17), was, sum, less) // 17: less, false for NaN
			VBLENDVPS(less, sum, was, was)
			VMOVUPS(was, least)
			if sign == 1 {
				VPOR(constant(0x80), one, one)
			}
			VMOVDQU(best, was)
			VBLENDVPS(less, one, was, was)
			VMOVDQU(was, best)
		}
		VPSUBD(minusOne(), at, at)
		DECQ(steps)
		JNZ(LabelRef("step"))
		was := YMM()
		VPMOVZXBD(Mem{Base: magnitudes}, was)
		VPCMPEQD(zero(), was, was)
		VPANDN(best, was, was)
		storeBytes(was, magnitudes)
		advance(magnitudes, 8)
		LEAQ(Mem{Base: x, Index: stride, Scale: 8}, x)
	})
	finish()
}

// sums are the squared errors of eight blocks with scales of both signs.
func (s *search8) sums(x, stride Register, scales Mem) (sums [2]VecVirtual) {
	p, left := GP64(), GP64()
	MOVQ(x, p)
	MOVQ(stride, left)
	sums = [2]VecVirtual{zero(), zero()}
	Label("chunk")
	row, q := GP64(), [2]VecVirtual{}
	MOVQ(p, row)
	for half := range q {
		var v [4]VecVirtual
		for i := range v {
			v[i] = YMM()
			VBROADCASTSS(scales.Offset(16*half+4*i), v[i])
			VMULPS(Mem{Base: row}, v[i], v[i])
			VCVTPS2DQ(v[i], v[i])
			ADDQ(stride, row)
		}
		VPACKSSDW(v[1], v[0], v[0])
		VPACKSSDW(v[3], v[2], v[2])
		VPACKSSWB(v[2], v[0], v[0])
		q[half] = v[0]
	}
	for sign := range sums {
		var e [2]VecVirtual
		for half := range q {
			if sign == 1 {
				t := zero()
				VPSUBSB(q[half], t, t)
				q[half] = t
			}
			e[half] = s.errors(q[half])
		}
		t := YMM() // 128-bit lanes have the halves of blocks
		VPERM2I128(U8(0x20), e[1], e[0], t)
		VPERM2I128(U8(0x31), e[1], e[0], e[0])
		VPADDD(t, sums[sign], sums[sign])
		VPADDD(e[0], sums[sign], sums[sign])
	}
	advance(p, vector)
	SUBQ(U32(vector), left)
	JNZ(LabelRef("chunk"))
	return sums
}

// errors are the sums of the squared errors of four numbers each.
func (s *search8) errors(q VecVirtual) VecVirtual {
	index, t := YMM(), YMM()
	VPCMPGTB(s.limits[0], q, index)
	VPABSB(index, index)
	for _, l := range s.limits[1:] {
		VPSHUFB(index, l, t)
		VPCMPGTB(t, q, t)
		VPADDB(index, index, index)
		VPSUBB(t, index, index)
	}
	VPSHUFB(index, s.entries, t)
	VPSUBSB(t, q, t)
	VPABSB(t, t)
	VPMINUB(s.max, t, t)
	VPMADDUBSW(t, t, t)
	VPMADDWD(s.ones, t, t)
	return t
}

func nearestEntry() {
	function("nearestEntryAVX2", "func(dst *byte, x, inverse *float32, n, stride int, limits *float32)",
		"nearestEntryAVX2 has n > 0 blocks of stride bytes, whole vectors.")
	dst, x, inverse, n, stride, tables := pointer("dst"), pointer("x"), pointer("inverse"), pointer("n"), pointer("stride"), pointer("limits")
	var limits [4]VecVirtual
	for i := range limits {
		limits[i] = YMM()
		VMOVUPS(at(tables, i), limits[i])
	}
	VBROADCASTSS(limits[0].AsX(), limits[0])
	Label("block")
	by, left := YMM(), GP64()
	VBROADCASTSS(Mem{Base: inverse}, by)
	advance(inverse, 4)
	MOVQ(stride, left)
	Label("vector")
	y, index, t := YMM(), YMM(), YMM()
	VMULPS(Mem{Base: x}, by, y)
	VCMPPS(U8(30), limits[0], y, index) // 30: greater
	VPSRLD(U8(31), index, index)
	for _, l := range limits[1:] {
		VPERMPS(l, index, t)
		VCMPPS(U8(30), t, y, t)
		VPADDD(index, index, index)
		VPSUBD(t, index, index)
	}
	storeBytes(index, dst)
	advance(dst, 8)
	advance(x, vector)
	SUBQ(U32(vector), left)
	JNZ(LabelRef("vector"))
	DECQ(n)
	JNZ(LabelRef("block"))
	finish()
}

// storeBytes stores the lowest byte of eight lanes.
func storeBytes(v VecVirtual, to Register) {
	VPACKUSDW(v, v, v)
	VPERMQ(U8(0x08), v, v)
	VPACKUSWB(v.AsX(), v.AsX(), v.AsX())
	VMOVQ(v.AsX(), Mem{Base: to})
}

func minusOne() VecVirtual {
	v := YMM()
	VPCMPEQD(v, v, v)
	return v
}

func repeated(w uint32) []uint32 { return []uint32{w, w, w, w, w, w, w, w} }
