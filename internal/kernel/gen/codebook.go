package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// codebookFamily searches the entries of codebooks and looks them up.
func codebookFamily() {
	blockPeaks()
	searchScale()
	nearestEntry()
	balanceRow()
	balanceRun()
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
	dst, x, inverse, n, stride, limits := pointer("dst"), pointer("x"), pointer("inverse"), pointer("n"), pointer("stride"), limitsOf(pointer("limits"))
	Label("block")
	by, left := YMM(), GP64()
	VBROADCASTSS(Mem{Base: inverse}, by)
	advance(inverse, 4)
	MOVQ(stride, left)
	Label("vector")
	y := YMM()
	VMULPS(Mem{Base: x}, by, y)
	storeBytes(limits.nearest(y), dst)
	advance(dst, 8)
	advance(x, vector)
	SUBQ(U32(vector), left)
	JNZ(LabelRef("vector"))
	DECQ(n)
	JNZ(LabelRef("block"))
	finish()
}

// A search finds the nearest of 16 entries for eight numbers at a time, as search8.
type search [4]VecVirtual

func limitsOf(tables Register) (s search) {
	for i := range s {
		s[i] = YMM()
		VMOVUPS(at(tables, i), s[i])
	}
	VBROADCASTSS(s[0].AsX(), s[0])
	return s
}

// nearest are the indices of the entries that are nearest to y.
func (s search) nearest(y VecVirtual) VecVirtual {
	index, t := YMM(), YMM()
	VCMPPS(U8(30), s[0], y, index) // 30: greater
	VPSRLD(U8(31), index, index)
	for _, l := range s[1:] {
		VPERMPS(l, index, t)
		VCMPPS(U8(30), t, y, t)
		VPADDD(index, index, index)
		VPSUBD(t, index, index)
	}
	return index
}

// A balancing is a loop over vectors of blocks with error feedback.
type balancing struct {
	dst, x, scales, inverse Register
	n, stride               Register
	entries                 Register
	limits                  search
	most, least             VecVirtual // shifts
}

func newBalancing() *balancing {
	b := &balancing{
		dst: pointer("dst"), x: pointer("x"), scales: pointer("scales"), inverse: pointer("inverse"), n: pointer("n"), stride: pointer("stride"),
		limits: limitsOf(pointer("limits")), entries: pointer("entries"),
		most: constant(math.Float32bits(1. / 16)), least: constant(math.Float32bits(-1. / 16)),
	}
	return b
}

// loop stores the indices of vectors. Body makes errors from shifts: it calls the function it gets.
func (b *balancing) loop(body func(errors func(shift VecVirtual) VecVirtual)) {
	Label("block")
	left := GP64()
	MOVQ(b.stride, left)
	Label("vector")
	body(b.errors)
	advance(b.dst, 8)
	advance(b.x, vector)
	SUBQ(U32(vector), left)
	JNZ(LabelRef("vector"))
	advance(b.inverse, 4)
	advance(b.scales, 4)
	DECQ(b.n)
	JNZ(LabelRef("block"))
	finish()
}

// errors are those of a vector of x with a shift, whose register is changed.
func (b *balancing) errors(shift VecVirtual) VecVirtual {
	x, by, y := YMM(), YMM(), YMM()
	VMOVUPS(at(b.x, 0), x)
	VBROADCASTSS(Mem{Base: b.inverse}, by)
	VMULPS(by, shift, shift)
	VMAXPS(b.least, shift, shift)
	VMINPS(b.most, shift, shift)
	VCMPPS(U8(4), zero(), x, y) // 4: not equal
	VANDPS(y, shift, shift)
	VMULPS(by, x, y)
	VADDPS(shift, y, y)
	index := b.limits.nearest(y)
	e := lookup16(b.entries, index)
	storeBytes(index, b.dst)
	VBROADCASTSS(Mem{Base: b.scales}, by)
	VMULPS(by, e, e)
	VSUBPS(x, e, e)
	return e
}

const balanceSignature = "func(dst *byte, x, scales, inverse *float32, n, stride int, limits, entries *float32, carry *float32"

func balanceRow() {
	function("balanceRowAVX2", balanceSignature+", part float32)", "balanceRowAVX2 has n > 0 blocks of stride bytes, whole vectors.")
	b, carry, part := newBalancing(), pointer("carry"), spread("part")
	b.loop(func(errors func(VecVirtual) VecVirtual) {
		sum := YMM()
		VMULPS(at(carry, 0), part, sum)
		e := errors(sum)
		VADDPS(at(carry, 0), e, e)
		VMOVUPS(e, at(carry, 0))
		advance(carry, vector)
	})
}

func balanceRun() {
	function("balanceRunAVX2", balanceSignature+")", "balanceRunAVX2 has n > 0 blocks of stride bytes, whole vectors, of one carry.")
	b, carry, sum := newBalancing(), pointer("carry"), YMM()
	part := constant(math.Float32bits(-1. / 8))
	VBROADCASTSS(Mem{Base: carry}, sum)
	b.loop(func(errors func(VecVirtual) VecVirtual) {
		shift, other := YMM(), YMM()
		VMULPS(part, sum, shift)
		e := errors(shift)
		VPERM2F128(U8(1), e, e, other) // sums of halves, in all lanes
		VADDPS(other, e, e)
		VPERMILPS(U8(0x4e), e, other)
		VADDPS(other, e, e)
		VPERMILPS(U8(0xb1), e, other)
		VADDPS(other, e, e)
		VADDPS(e, sum, sum)
		VMOVSS(sum.AsX(), Mem{Base: carry})
	})
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
