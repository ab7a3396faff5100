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

const tried = 5 // scales

func searchScale() {
	function("searchScaleAVX2", "func(magnitudes *byte, x *float32, n, stride int, inverse, squares *float32, ratios *int16, limits *int8)",
		"searchScaleAVX2 has n%8 == 0 blocks of stride bytes, whole vectors; the entries are after the limits.")
	magnitudes, x, n, stride := pointer("magnitudes"), pointer("x"), pointer("n"), pointer("stride")
	inverse, squares, ratios, limits := pointer("inverse"), pointer("squares"), pointer("ratios"), pointer("limits")
	s := search8{entries: YMM(), ones: words("codebookOnes", repeated(0x00010001)...), max: words("codebookMax", repeated(0x5a5a5a5a)...)}
	for i := range s.limits {
		s.limits[i] = YMM()
		VBROADCASTI128(Mem{Base: limits, Disp: 16 * i}, s.limits[i])
	}
	VBROADCASTI128(Mem{Base: limits, Disp: 64}, s.entries)
	VPSHUFB(zero(), s.limits[0], s.limits[0])
	q, sums := AllocLocal(4*vector), AllocLocal(2*tried*vector)
	strips("blocks", n, 8, func() {
		for i := range 2 * tried {
			VMOVDQU(zero(), sums.Offset(vector*i))
		}
		p, left := GP64(), GP64()
		MOVQ(x, p)
		MOVQ(stride, left)
		Label("chunk")
		integers(q, p, stride, magnitudes, inverse)
		for i := range tried {
			s.add(sums.Offset(2*vector*i), q, Mem{Base: ratios, Disp: 2 * i})
		}
		advance(p, vector)
		SUBQ(U32(vector), left)
		JNZ(LabelRef("chunk"))
		bestMagnitudes(magnitudes, sums, squares)
		advance(magnitudes, 8)
		LEAQ(Mem{Base: x, Index: stride, Scale: 8}, x)
	})
	finish()
}

// integers stores a vector of each of eight blocks as 16-bit integers, relative to the first scales: halves of blocks in 128-bit lanes.
func integers(q Mem, x, stride, magnitudes, inverse Register) {
	row, m := GP64(), GP64()
	MOVQ(x, row)
	var v [2]VecVirtual
	for i := range 8 {
		MOVBLZX(Mem{Base: magnitudes, Disp: i}, m.As32())
		v[i%2] = YMM()
		VBROADCASTSS(Mem{Base: inverse, Index: m, Scale: 4}, v[i%2])
		VMULPS(Mem{Base: row}, v[i%2], v[i%2])
		VCVTPS2DQ(v[i%2], v[i%2])
		ADDQ(stride, row)
		if i%2 == 1 {
			VPACKSSDW(v[1], v[0], v[0])
			VMOVDQU(v[0], q.Offset(vector*(i/2)))
		}
	}
}

// add adds the squared errors of numbers times a ratio, and of their negatives, to the two vectors of sums.
func (s *search8) add(sums, q, ratio Mem) {
	by, halves := YMM(), [2]VecVirtual{}
	VPBROADCASTW(ratio, by)
	for half := range halves {
		a, b := YMM(), YMM()
		VPMULHRSW(q.Offset(2*vector*half), by, a)
		VPMULHRSW(q.Offset(2*vector*half+vector), by, b)
		VPACKSSWB(b, a, a)
		halves[half] = a
	}
	for sign := range 2 {
		var e [2]VecVirtual
		for half, v := range halves {
			if sign == 1 {
				t := zero()
				VPSUBSB(v, t, t)
				v = t
			}
			e[half] = s.errors(v)
		}
		t := YMM() // 128-bit lanes have the halves of blocks
		VPERM2I128(U8(0x20), e[1], e[0], t)
		VPERM2I128(U8(0x31), e[1], e[0], e[0])
		VPADDW(t, e[0], t)
		VPMADDWD(s.ones, t, t)
		VPADDD(sums.Offset(vector*sign), t, t)
		VMOVDQU(t, sums.Offset(vector*sign))
	}
}

// errors are the sums of the squared errors of two numbers each.
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
	return t
}

// bestMagnitudes replaces eight magnitudes but 0 by those of the least sums times squares. Bit 7 is the sign.
func bestMagnitudes(magnitudes Register, sums Mem, squares Register) {
	best, least, at, less := zero(), constant(0x7f800000), YMM(), YMM()
	VPMOVZXBD(Mem{Base: magnitudes}, at)
	VPADDD(minusOne(), at, at)
	lowest, highest, sign := constant(1), words("codebookHighest", repeated(127)...), words("codebookSign", repeated(0x80)...)
	for i := range tried {
		square, one := YMM(), YMM()
		VBROADCASTSS(Mem{Base: squares, Disp: 4 * i}, square)
		VMOVDQU(at, one)
		none, t := YMM(), YMM() // no such magnitude
		VPCMPGTD(highest, at, none)
		VPCMPGTD(at, lowest, t)
		VPOR(t, none, none)
		for j := range 2 {
			sum := YMM()
			VCVTDQ2PS(sums.Offset(vector*(2*i+j)), sum)
			VMULPS(square, sum, sum)
			VCMPPS(U8(17), least, sum, less) // 17: less, false for NaN
			VPANDN(less, none, less)
			VBLENDVPS(less, sum, least, least)
			VBLENDVPS(less, one, best, best)
			VPOR(sign, one, one)
		}
		VPADDD(lowest, at, at)
	}
	m := YMM()
	VPMOVZXBD(Mem{Base: magnitudes}, m)
	VPCMPEQD(zero(), m, m)
	VPANDN(best, m, m)
	storeBytes(m, magnitudes)
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
