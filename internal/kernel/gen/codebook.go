package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// codebookFamily searches the entries of codebooks and looks them up.
func codebookFamily() {
	blockMagnitudes()
	t := newSearchTables()
	searchScale("searchScaleAVX2", true, t)
	searchScale("searchScalePairsAVX2", false, t)
	nearestEntry()
	balanceRow()
	balanceRun()
	lookups()
}

// blockMagnitudes reduces eight blocks at a time: a tree of maxima of halves, which ends with one block in each lane.
func blockMagnitudes() {
	function("blockMagnitudesAVX2", "func(dst *byte, x *float32, n, stride int, limits *uint32)",
		"blockMagnitudesAVX2 has n%8 == 0 blocks of stride bytes, whole vectors.")
	dst, x, n, stride, mask, limits := pointer("dst"), pointer("x"), pointer("n"), pointer("stride"),
		constant(magnitude), pointer("limits")
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
		storeBytes(magnitudesOf(v[0], limits), dst)
		advance(dst, 8)
		LEAQ(Mem{Base: x, Index: stride, Scale: 8}, x)
	})
	finish()
}

// magnitudesOf are those of the scales nearest to positive numbers: eight an octave, 127 for 1.
func magnitudesOf(v VecVirtual, limits Register) VecVirtual {
	m := YMM()
	// The exponent times eight, such that that of 1, which is 127, gives 127.
	VPSRLD(U8(23), v, m)
	VPSLLD(U8(3), m, m)
	VPSUBD(words("codebookBias", repeated(127*8-127)...), m, m)
	VPAND(words("codebookMantissa", repeated(1<<23-1)...), v, v)
	for i := range 8 {
		t := YMM()
		VPBROADCASTD(Mem{Base: limits, Disp: 4 * i}, t)
		VPCMPGTD(t, v, t)
		// A comparison that holds is -1.
		VPSUBD(t, m, m)
	}
	// Numbers up to an octave below the least scale have it, 1; smaller ones have 0.
	VPCMPGTD(words("codebookHalf", repeated(1<<32-8)...), m, v)
	VPSRLD(U8(31), v, v)
	VPMAXSD(v, m, m)
	VPMINSD(words("codebookLargest", repeated(127)...), m, m)
	return m
}

// integers stores a vector of each of eight blocks, times the inverse of a byte, as 16-bit integers: halves of blocks
// in 128-bit lanes.
func integers(q Mem, x, stride, bytes, inverse Register) {
	row, m := GP64(), GP64()
	MOVQ(x, row)
	var v [2]VecVirtual
	for i := range 8 {
		MOVBLZX(Mem{Base: bytes, Disp: i}, m.As32())
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

const (
	scaleCount = 5 // scales
	scaleSign  = 0x80
)

// searchTables are the read-only data of searches.
type searchTables struct{ low, ones, most, sign, lowest Mem }

func newSearchTables() searchTables {
	return searchTables{
		low: words("codebookLow", repeated(0x0f0f0f0f)...), ones: words("codebookOnes", repeated(0x00010001)...),
		most: words("codebookMost", repeated(0x7f7f7f7f)...), sign: words("codebookSign", repeated(scaleSign)...),
		lowest: words("codebookLowest", repeated(0xff)...),
	}
}

// A scaleSearch adds up squared errors of numbers relative to scales, 32 at a time, by the pairs of entries of their
// cells.
type scaleSearch struct {
	searchTables
	q, signs, sums Mem
	pairs, count   Register
	mean, half     [2]VecVirtual // of the only pairs, for positive and negative numbers
	single         bool
	loops          int
}

// searchScale is the search for codebooks of one pair for each cell, whose tables are in registers, or of several ones.
func searchScale(name string, single bool, t searchTables) {
	function(name, "func(magnitudes *byte, x *float32, n, stride int, inverse, squares *float32, ratios *int16, "+
		"pairs *byte, count int)",
		name+" has n%8 == 0 blocks of stride bytes, whole vectors.")
	magnitudes, x, n, stride := pointer("magnitudes"), pointer("x"), pointer("n"), pointer("stride")
	inverse, squares, ratios := pointer("inverse"), pointer("squares"), pointer("ratios")
	s := scaleSearch{
		q: AllocLocal(4 * vector), signs: AllocLocal(2 * vector), sums: AllocLocal(2 * scaleCount * vector),
		pairs: pointer("pairs"), count: pointer("count"), single: single, searchTables: t,
	}
	for sign := range s.mean {
		if single {
			s.mean[sign], s.half[sign] = pairTables(s.pairs, sign)
		}
	}
	strips("blocks", n, 8, func() {
		for i := range 2 * scaleCount {
			VMOVDQU(zero(), s.sums.Offset(vector*i))
		}
		p, left := GP64(), GP64()
		MOVQ(x, p)
		MOVQ(stride, left)
		Label("chunk")
		integers(s.q, p, stride, magnitudes, inverse)
		s.splitSigns()
		for i := range scaleCount {
			s.add(s.sums.Offset(2*vector*i), Mem{Base: ratios, Disp: 2 * i})
		}
		advance(p, vector)
		SUBQ(U32(vector), left)
		JNZ(LabelRef("chunk"))
		s.best(magnitudes, squares)
		advance(magnitudes, 8)
		LEAQ(Mem{Base: x, Index: stride, Scale: 8}, x)
	})
	finish()
}

// splitSigns replaces numbers by their magnitudes, and stores their signs.
func (s *scaleSearch) splitSigns() {
	for half := range 2 {
		var v [2]VecVirtual
		for i := range v {
			at, t := s.q.Offset(vector*(2*half+i)), zero()
			v[i] = YMM()
			VMOVDQU(at, v[i])
			VPSUBSW(v[i], t, t)
			VPMAXSW(v[i], t, t)
			VMOVDQU(t, at)
		}
		VPACKSSWB(v[1], v[0], v[0])
		VMOVDQU(v[0], s.signs.Offset(vector*half))
	}
}

// add adds the squared errors of numbers times a ratio, and of their negatives, to the two vectors of sums.
func (s *scaleSearch) add(sums, ratio Mem) {
	by, e := YMM(), [2][2]VecVirtual{}
	VPBROADCASTW(ratio, by)
	for half := range e {
		e[half] = s.errors(half, by)
	}
	for sign := range 2 {
		a, b, t := e[0][sign], e[1][sign], YMM() // 128-bit lanes have the halves of blocks
		VPBLENDD(U8(0xf0), b, a, t)
		VPERM2I128(U8(0x21), b, a, a)
		VPADDD(t, a, a)
		VPADDD(sums.Offset(vector*sign), a, a)
		VMOVDQU(a, sums.Offset(vector*sign))
	}
}

// errors are the sums of the squared errors of four numbers each, and those of their negatives.
func (s *scaleSearch) errors(half int, by VecVirtual) (e [2]VecVirtual) {
	m, t, cell := YMM(), YMM(), YMM()
	VPMULHRSW(s.q.Offset(2*vector*half), by, m)
	VPMULHRSW(s.q.Offset(2*vector*half+vector), by, t)
	VPACKUSWB(t, m, m)
	VPSRLW(U8(4), m, cell)
	VPAND(s.low, cell, cell)
	for sign := range e {
		if e[sign] = YMM(); s.single {
			distances(m, cell, s.mean[sign], s.half[sign], e[sign])
		} else {
			VMOVDQU(s.most, e[sign])
		}
	}
	if !s.single {
		s.nearest(m, cell, e)
	}
	// For a negative number the entries for positive and negative ones change places.
	VMOVDQU(s.signs.Offset(vector*half), t)
	VPBLENDVB(t, e[1], e[0], m)
	VPBLENDVB(t, e[0], e[1], e[1])
	e[0] = m
	for sign := range e {
		VPMADDUBSW(e[sign], e[sign], e[sign])
		VPMADDWD(s.ones, e[sign], e[sign])
	}
	return e
}

// nearest reduces e to the least distances from pairs.
func (s *scaleSearch) nearest(m, cell VecVirtual, e [2]VecVirtual) {
	p, left, loop := GP64(), GP64(), fmt.Sprintf("pair%d", s.loops)
	s.loops++
	MOVQ(s.pairs, p)
	MOVQ(s.count, left)
	Label(loop)
	for sign := range e {
		mean, half := pairTables(p, sign)
		distances(m, cell, mean, half, mean)
		VPMINUB(mean, e[sign], e[sign])
	}
	ADDQ(U32(64), p)
	DECQ(left)
	JNZ(LabelRef(loop))
}

func pairTables(p Register, sign int) (mean, half VecVirtual) {
	mean, half = YMM(), YMM()
	VBROADCASTI128(Mem{Base: p, Disp: 32 * sign}, mean)
	VBROADCASTI128(Mem{Base: p, Disp: 32*sign + 16}, half)
	return mean, half
}

// distances are those of magnitudes from the nearer one of their cells' entries.
func distances(m, cell, mean, half, to VecVirtual) {
	// The nearer one of mean - half and mean + half is ||m - mean| - half| away.
	t := YMM()
	VPSHUFB(cell, mean, to)
	VPSUBB(to, m, to)
	VPABSB(to, to)
	VPSHUFB(cell, half, t)
	VPSUBB(t, to, to)
	VPABSB(to, to)
}

// best replaces eight magnitudes but 0 by the scales of the least sums times squares, whose lowest bits are the scale.
func (s *scaleSearch) best(magnitudes, squares Register) {
	least, at, lowest, one, last := minusOne(), YMM(), constant(scaleSign), constant(1), constant(127)
	VPMOVZXBD(Mem{Base: magnitudes}, at)
	VPADDD(minusOne(), at, at)
	for i := range scaleCount {
		square, scale, none, sums := YMM(), YMM(), YMM(), [2]VecVirtual{YMM(), YMM()}
		VBROADCASTSS(Mem{Base: squares, Disp: 4 * i}, square)
		VMOVDQU(at, scale)
		for j, sum := range sums {
			VCVTDQ2PS(s.sums.Offset(vector*(2*i+j)), sum)
			VMULPS(square, sum, sum)
			VPBLENDVB(lowest, scale, sum, sum)
			VPOR(s.sign, scale, scale)
		}
		VPMINUD(sums[1], sums[0], sums[0])
		if i == 0 { // no such magnitude
			VPCMPGTD(at, one, none)
		} else {
			VPCMPGTD(last, at, none)
		}
		VPOR(none, sums[0], sums[0])
		VPMINUD(sums[0], least, least)
		VPADDD(one, at, at)
	}
	VPMOVZXBD(Mem{Base: magnitudes}, at)
	VPCMPEQD(zero(), at, at)
	VPANDN(least, at, at)
	VPAND(s.lowest, at, at)
	storeBytes(at, magnitudes)
}

// An entrySearch finds entries by the cells of 16-bit integers, two vectors at a time.
type entrySearch struct {
	positive, negative   VecVirtual // first entries of cells
	low, high            VecVirtual // bytes of limits
	signs, order         VecVirtual
	steps, row, rowBytes Register
}

func nearestEntry() {
	function("nearestEntryAVX2", "func(dst *byte, x *float32, scales *byte, n, stride int, inverse *float32, first, "+
		"limits *byte, steps int)",
		"nearestEntryAVX2 has n%8 == 0 blocks of stride bytes, whole vectors; limits are lower bytes and upper ones.")
	dst, x, scales, n, stride := pointer("dst"), pointer("x"), pointer("scales"), pointer("n"), pointer("stride")
	inverse, first, limits := pointer("inverse"), pointer("first"), pointer("limits")
	s := entrySearch{YMM(), YMM(), YMM(), YMM(), constant(0x80808080), YMM(), pointer("steps"), GP64(), GP64()}
	VBROADCASTI128(Mem{Base: first}, s.positive)
	VBROADCASTI128(Mem{Base: first, Disp: 16}, s.negative)
	VBROADCASTI128(Mem{Base: limits}, s.low)
	VBROADCASTI128(Mem{Base: limits, Disp: 16}, s.high)
	VMOVDQU(words("codebookOrder", 0, 4, 1, 5, 2, 6, 3, 7), s.order)
	MOVQ(stride, s.rowBytes)
	SHRQ(U8(2), s.rowBytes)
	q := AllocLocal(4 * vector)
	strips("blocks", n, 8, func() {
		p, left, to := GP64(), GP64(), GP64()
		MOVQ(x, p)
		MOVQ(dst, to)
		MOVQ(stride, left)
		Label("chunk")
		integers(q, p, stride, scales, inverse)
		MOVQ(to, s.row)
		for half := range 2 {
			s.store(s.entries(q.Offset(2*vector*half), fmt.Sprintf("step%d", half)))
		}
		advance(to, 8)
		advance(p, vector)
		SUBQ(U32(vector), left)
		JNZ(LabelRef("chunk"))
		advance(scales, 8)
		LEAQ(Mem{Base: x, Index: stride, Scale: 8}, x)
		LEAQ(Mem{Base: dst, Index: s.rowBytes, Scale: 8}, dst)
	})
	finish()
}

// entries are the indices for two vectors: that of the first number of the cell, and one more for each limit below.
func (s *entrySearch) entries(q Mem, step string) VecVirtual {
	a, b, index, t := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(q, a)
	VMOVDQU(q.Offset(vector), b)
	VPSRAW(U8(11), a, index)
	VPSRAW(U8(11), b, t)
	VPACKSSWB(t, index, index)
	// VPSHUFB gives 0 for an index with the highest bit: for negative numbers in the first table, for others in the
	// second.
	VPXOR(s.signs, index, t)
	VPSHUFB(index, s.positive, index)
	VPSHUFB(t, s.negative, t)
	VPOR(t, index, index)
	left := GP64()
	MOVQ(s.steps, left)
	Label(step)
	low, high := YMM(), YMM()
	VPSHUFB(index, s.low, low)
	VPSHUFB(index, s.high, high)
	VPUNPCKLBW(high, low, t)
	VPUNPCKHBW(high, low, high)
	VPCMPGTW(t, a, t)
	VPCMPGTW(high, b, high)
	VPACKSSWB(high, t, t)
	VPSUBB(t, index, index)
	DECQ(left)
	JNZ(LabelRef(step))
	return index
}

// store stores eight bytes of each of four blocks, whose halves are in 128-bit lanes.
func (s *entrySearch) store(v VecVirtual) {
	VPERMD(v, s.order, v)
	for i := range 4 {
		if i == 2 {
			VEXTRACTI128(U8(1), v, v.AsX())
		}
		if i%2 == 0 {
			VMOVQ(v.AsX(), Mem{Base: s.row})
		} else {
			VMOVHPS(v.AsX(), Mem{Base: s.row})
		}
		ADDQ(s.rowBytes, s.row)
	}
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
	// A binary search among 15 limits, with a step for each bit of the index.
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
