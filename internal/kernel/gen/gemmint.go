package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// intTile is rows by 8 or 16 columns of int32. Four columns by four steps of k are a vector of 16-bit factors, and
// VPMADDWD computes two sums of each column, which are added at the end.
type intTile struct{ rows, cols int }

// quadBytes is the size of four steps of k of a row of A, as int16; of four columns of B, as int8, it is twice that.
const quadBytes = 8

func (t intTile) emit() {
	name := fmt.Sprintf("gemmInt%dx%dAVX2", t.rows, t.cols)
	function(name, "func(strips, quads int, a *byte, aRow int, b *byte, c *int32, cRow, add int)",
		name+" stores a·b, or adds it to c, for strips of rows; strides in bytes, strips and quads > 0.")
	shape := tile{rows: t.rows}
	strips, top, quads, b := pointer("strips"), pointer("a"), GP64(), GP64()
	a, c := shape.operand("a", "aRow", t.rows), shape.operand("c", "cRow", t.rows)
	Label("strip")
	a.from(top)
	Load(Param("quads"), quads)
	Load(Param("b"), b)
	sums := make([][]VecVirtual, t.rows)
	for r := range sums {
		sums[r] = each(t.cols/4, func(int) VecVirtual { return zero() })
	}
	Label("quad")
	t.multiply(a, b, sums)
	for _, p := range a.base {
		advance(p, quadBytes)
	}
	advance(b, panelBytes)
	DECQ(quads)
	JNZ(LabelRef("quad"))
	t.store(c, sums)
	step := GP64()
	IMUL3Q(U8(t.rows), a.stride, step)
	ADDQ(step, top)
	IMUL3Q(U8(t.rows), c.stride, step)
	c.advance(step)
	DECQ(strips)
	JNZ(LabelRef("strip"))
	finish()
}

func (t intTile) multiply(a strided, b Register, sums [][]VecVirtual) {
	right := func(i int) VecVirtual {
		y := YMM()
		VPMOVSXBW(Mem{Base: b, Disp: i * 2 * quadBytes}, y)
		return y
	}
	left := func(r int) VecVirtual {
		x := YMM()
		VPBROADCASTQ(a.at(r, 0), x)
		return x
	}
	sum := func(y, x, into VecVirtual) {
		p := YMM()
		VPMADDWD(y, x, p)
		VPADDD(p, into, into)
	}
	// The fewer operands stay in registers, the others are loaded one by one.
	if wide := t.cols / 4; t.rows < wide {
		x := each(t.rows, left)
		for i := range wide {
			y := right(i)
			for r := range x {
				sum(y, x[r], sums[r][i])
			}
		}
		return
	}
	y := each(t.cols/4, right)
	for r := range t.rows {
		x := left(r)
		for i := range y {
			sum(y[i], x, sums[r][i])
		}
	}
}

func (t intTile) store(c strided, sums [][]VecVirtual) {
	for _, row := range sums {
		for i := 0; i < len(row); i += 2 {
			// Within 128-bit lanes: VPERMQ brings the pairs of columns into order.
			VPHADDD(row[i+1], row[i], row[i])
			VPERMQ(U8(0xd8), row[i], row[i])
		}
	}
	add := pointer("add")
	TESTQ(add, add)
	JZ(LabelRef("store"))
	t.each(sums, func(r, bytes int, s VecVirtual) { VPADDD(c.at(r, bytes), s, s) })
	Label("store")
	t.each(sums, func(r, bytes int, s VecVirtual) { VMOVDQU(s, c.at(r, bytes)) })
}

// each calls f with the vectors of eight columns.
func (t intTile) each(sums [][]VecVirtual, f func(r, bytes int, s VecVirtual)) {
	for r, row := range sums {
		for i := 0; i < len(row); i += 2 {
			f(r, i/2*vector, row[i])
		}
	}
}

// gemmQuads interleaves the bytes of four steps of k, in panels of 16 columns. As in packRows, all panels of four rows
// are processed before the next rows.
func gemmQuads() {
	function("quadsAVX2", "func(dst *byte, panel int, src *byte, row, quads, panels int, flip uint32)",
		"quadsAVX2 packs panels of 4·quads rows of 16·panels bytes; quads > 0, panels > 0. dst may be src if row is 16.")
	dst, panel, row := pointer("dst"), pointer("panel"), pointer("row")
	quads, panels := pointer("quads"), pointer("panels")
	src := tile{}.operand("src", "row", 4)
	flip := spread("flip").AsX()
	rows, to, left := GP64(), GP64(), GP64()
	from := strided{[]GPVirtual{GP64(), GP64()}, src.stride}
	MOVQ(row, rows)
	SHLQ(U8(2), rows)
	Label("quad")
	MOVQ(dst, to)
	for i, p := range src.base {
		MOVQ(p, from.base[i])
	}
	MOVQ(panels, left)
	Label("panel")
	for i, q := range quadsOf(from) {
		VPXOR(flip, q, q)
		VMOVDQU(q, Mem{Base: to, Disp: i * 16})
	}
	for _, p := range from.base {
		advance(p, 16)
	}
	ADDQ(panel, to)
	DECQ(left)
	JNZ(LabelRef("panel"))
	src.advance(rows)
	advance(dst, panelBytes)
	DECQ(quads)
	JNZ(LabelRef("quad"))
	finish()
}

// quadsOf are the columns of four rows of 16 bytes, four columns in each register.
func quadsOf(rows strided) []VecVirtual {
	r := each(4, func(i int) VecVirtual {
		x := XMM()
		VMOVDQU(rows.at(i, 0), x)
		return x
	})
	mix := func(f func(...Op), a, b VecVirtual) VecVirtual {
		x := XMM()
		f(b, a, x)
		return x
	}
	low, high := mix(VPUNPCKLBW, r[0], r[1]), mix(VPUNPCKHBW, r[0], r[1])
	low2, high2 := mix(VPUNPCKLBW, r[2], r[3]), mix(VPUNPCKHBW, r[2], r[3])
	return []VecVirtual{
		mix(VPUNPCKLWD, low, low2), mix(VPUNPCKHWD, low, low2),
		mix(VPUNPCKLWD, high, high2), mix(VPUNPCKHWD, high, high2),
	}
}

// gemmWiden converts rows of bytes minus a zero point to int16, and adds their sums to sums. The bytes of a row may be
// at its end.
func gemmWiden(name string, extend func(...Op)) {
	function(name, "func(dst *byte, to int, src *byte, from, rows, n int, zero uint32, sums *int32)",
		name+" needs n%8 == 0, rows and n > 0.")
	dst, src, rows, sums := pointer("dst"), pointer("src"), pointer("rows"), pointer("sums")
	less, ones := spread16("zero"), constant(1<<16|1)
	n, d, s, total := GP64(), GP64(), GP64(), YMM()
	block := func(x, less, ones, total Register, bytes int) func() {
		return func() {
			extend(Mem{Base: s}, x)
			VPSUBW(less, x, x)
			VMOVDQU(x, Mem{Base: d})
			VPMADDWD(ones, x, x)
			VPADDD(x, total, total)
			advance(s, bytes)
			advance(d, 2*bytes)
		}
	}
	Label("row")
	Load(Param("n"), n)
	MOVQ(dst, d)
	MOVQ(src, s)
	VPXOR(total, total, total)
	strips("sixteen", n, 16, block(YMM(), less, ones, total, 16))
	last := XMM()
	VPXOR(last, last, last)
	strips("eight", n, 8, block(XMM(), less.AsX(), ones.AsX(), last, 8))
	VPADDD(last.AsY(), total, total)
	ADDL(fold(total, func(a, b, c Op) { VPADDD(a, b, c) }), Mem{Base: sums})
	advance(sums, 4)
	ADDQ(parameter("to"), dst)
	ADDQ(parameter("from"), src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	finish()
}

// gemmFlip copies bytes, XORed with flip, and sums them as uint8.
func gemmFlip() {
	function("flipAVX2", "func(dst, src *byte, n int, flip uint32) (sum uint32)", "flipAVX2 needs n%32 == 0, n > 0.")
	dst, src, n, flip := pointer("dst"), pointer("src"), pointer("n"), spread("flip")
	total, none := zero(), zero()
	Label("vector")
	x, sums := YMM(), YMM()
	VPXOR(at(src, 0), flip, x)
	VMOVDQU(x, at(dst, 0))
	VPSADBW(none, x, sums)
	VPADDQ(sums, total, total)
	advance(src, vector)
	advance(dst, vector)
	SUBQ(U32(vector), n)
	JNZ(LabelRef("vector"))
	// The four sums are so small that they fit their low halves.
	Store(fold(total, func(a, b, c Op) { VPADDD(a, b, c) }), Return("sum"))
	finish()
}

// gemmShuffle copies rows of bytes, XORed with flip, whose blocks of 32 are shuffled. VPSHUFB takes bytes from 16, here
// of either half of a block.
func gemmShuffle(rows int) {
	name := fmt.Sprintf("shuffle%dAVX2", rows)
	function(name, "func(dst *byte, to int, src *byte, from, strips, n int, flip uint32, order *byte)",
		fmt.Sprintf("%s sets byte i of a block of a row to byte order[i] of its block, for strips of %d rows; n%%32 == "+
			"0, strips and n > 0.", name, rows))
	shape := tile{rows: rows}
	dst, src := shape.operand("dst", "to", rows), shape.operand("src", "from", rows)
	strips, flip := pointer("strips"), spread("flip")
	n, order, nextDst, nextSrc := GP64(), GP64(), GP64(), GP64()
	MOVQ(dst.base[0], nextDst)
	MOVQ(src.base[0], nextSrc)
	Label("strip")
	Load(Param("n"), n)
	Load(Param("order"), order)
	dst.from(nextDst)
	src.from(nextSrc)
	Label("vector")
	indices, second := YMM(), YMM()
	VMOVDQU(at(order, 0), indices)
	VPSLLW(U8(3), indices, second) // an index above 15: the sign bit
	for r := range rows {
		half := func(bytes int) VecVirtual {
			y := YMM()
			VBROADCASTI128(src.at(r, bytes), y)
			VPSHUFB(indices, y, y)
			return y
		}
		low, high := half(0), half(16)
		VPBLENDVB(second, high, low, low)
		VPXOR(flip, low, low)
		VMOVDQU(low, dst.at(r, 0))
	}
	for _, p := range slices.Concat(dst.base, src.base, []GPVirtual{order}) {
		advance(p, vector)
	}
	SUBQ(U32(vector), n)
	JNZ(LabelRef("vector"))
	for range rows {
		ADDQ(dst.stride, nextDst)
		ADDQ(src.stride, nextSrc)
	}
	DECQ(strips)
	JNZ(LabelRef("strip"))
	finish()
}

// gemmQuadSums sums the quads of a panel for each of its columns.
func gemmQuadSums() {
	function("quadSumsAVX2", "func(sums *int32, b *byte, quads int)",
		"quadSumsAVX2 adds int8 elements to 16 sums; quads > 0.")
	sums, b, quads := pointer("sums"), pointer("b"), pointer("quads")
	ones, words := constant(0x01010101), constant(1<<16|1)
	total := each(2, func(i int) VecVirtual {
		y := YMM()
		VMOVDQU(at(sums, i), y)
		return y
	})
	Label("quad")
	for i, t := range total {
		y := YMM()
		// The ones are the unsigned operand, so that bytes of b are signed.
		VPMADDUBSW(at(b, i), ones, y)
		VPMADDWD(words, y, y)
		VPADDD(y, t, t)
	}
	advance(b, panelBytes)
	DECQ(quads)
	JNZ(LabelRef("quad"))
	for i, t := range total {
		VMOVDQU(t, at(sums, i))
	}
	finish()
}
