package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// packRows copies rows into panels. All panels of a row are written before the next row, because rows may be on
// different pages.
func packRows() {
	function("packRowsAVX2", "func(dst *float32, panel int, src *float32, row, k, panels int)",
		"packRowsAVX2 copies k rows of 16·panels elements into panels; strides in bytes, k > 0, panels > 0.")
	dst, panel, src, row := pointer("dst"), pointer("panel"), pointer("src"), pointer("row")
	k, panels := pointer("k"), pointer("panels")
	to, from, left := GP64(), GP64(), GP64()
	Label("row")
	MOVQ(dst, to)
	MOVQ(src, from)
	MOVQ(panels, left)
	Label("panel")
	for i := range panelBytes / vector {
		x := YMM()
		VMOVUPS(at(from, i), x)
		VMOVUPS(x, at(to, i))
	}
	advance(from, panelBytes)
	ADDQ(panel, to)
	DECQ(left)
	JNZ(LabelRef("panel"))
	ADDQ(row, src)
	advance(dst, panelBytes)
	DECQ(k)
	JNZ(LabelRef("row"))
	finish()
}

// packColumns packs a panel of columns with contiguous elements. Elements are words of four bytes that are XORed with
// flip, so that it serves both types.
func packColumns() {
	function("packColumnsAVX2", "func(dst, src *float32, col, k int, flip uint32)",
		"packColumnsAVX2 packs a panel of 16 columns that are col bytes apart; k%4 == 0, k > 0.")
	dst, k := pointer("dst"), pointer("k")
	src := tile{}.operand("src", "col", 16)
	flip := spread("flip")
	Label("four")
	for half := range 2 {
		for i, v := range transposeFour(src, 8*half, 8) {
			VXORPS(flip, v, v)
			VMOVUPS(v, Mem{Base: dst, Disp: i*panelBytes + half*vector})
		}
	}
	for _, p := range src.base {
		advance(p, 16)
	}
	advance(dst, 4*panelBytes)
	SUBQ(U32(4), k)
	JNZ(LabelRef("four"))
	finish()
}

// packSix packs six rows of a strip, of rows with contiguous elements.
func packSix() {
	function("packSixAVX2", "func(dst *float32, step int, src *float32, row, k int)",
		"packSixAVX2 writes 6 elements, one of each row, every step bytes; k%4 == 0, k > 0.")
	dst, step, k := pointer("dst"), pointer("step"), pointer("k")
	src := tile{}.operand("src", "row", 6)
	Label("four")
	for _, v := range transposeFour(src, 0, 6) {
		x := XMM()
		VEXTRACTF128(U8(1), v, x)
		VMOVUPS(v.AsX(), Mem{Base: dst})
		VMOVLPS(x, Mem{Base: dst, Disp: 16})
		ADDQ(step, dst)
	}
	for _, p := range src.base {
		advance(p, 16)
	}
	SUBQ(U32(4), k)
	JNZ(LabelRef("four"))
	finish()
}

// packSixes packs six rows of strips, of columns with contiguous elements.
func packSixes() {
	function("packSixesAVX2", "func(dst *float32, strip, step int, src *float32, hop, col, k, strips int)",
		"packSixesAVX2 copies 6 elements, hop bytes after the last, to each strip, and this for k columns; strides in "+
			"bytes, k > 0, strips > 0.")
	dst, strip, step := pointer("dst"), pointer("strip"), pointer("step")
	src, hop, col := pointer("src"), pointer("hop"), pointer("col")
	k, strips := pointer("k"), pointer("strips")
	to, from, left := GP64(), GP64(), GP64()
	Label("column")
	MOVQ(dst, to)
	MOVQ(src, from)
	MOVQ(strips, left)
	Label("strip")
	x, y := XMM(), XMM()
	VMOVUPS(Mem{Base: from}, x)
	VMOVSD(Mem{Base: from, Disp: 16}, y)
	VMOVUPS(x, Mem{Base: to})
	VMOVSD(y, Mem{Base: to, Disp: 16})
	ADDQ(hop, from)
	ADDQ(strip, to)
	DECQ(left)
	JNZ(LabelRef("strip"))
	ADDQ(col, src)
	ADDQ(step, dst)
	DECQ(k)
	JNZ(LabelRef("column"))
	finish()
}

// transposeFour transposes four elements of up to eight rows into four vectors. A register holds the elements of row i
// and of row i+4 in its lanes.
func transposeFour(src strided, first, rows int) []VecVirtual {
	row := make([]VecVirtual, 4)
	for i := range row {
		row[i] = YMM()
		VMOVUPS(src.at(first+i, 0), row[i].AsX())
		if i+4 < rows {
			VINSERTF128(U8(1), src.at(first+i+4, 0), row[i], row[i])
		}
	}
	mix := func(f func(...Op), a, b VecVirtual) VecVirtual {
		y := YMM()
		f(b, a, y)
		return y
	}
	low, high := mix(VUNPCKLPS, row[0], row[1]), mix(VUNPCKLPS, row[2], row[3])
	low2, high2 := mix(VUNPCKHPS, row[0], row[1]), mix(VUNPCKHPS, row[2], row[3])
	return []VecVirtual{
		mix(VUNPCKLPD, low, high), mix(VUNPCKHPD, low, high),
		mix(VUNPCKLPD, low2, high2), mix(VUNPCKHPD, low2, high2),
	}
}

// gemmLessTimes subtracts multiples from int32 sums: y -= (x - lift)·times.
func gemmLessTimes() {
	function("lessTimesAVX2", "func(y, x *int32, n int, lift, times uint32)", "lessTimesAVX2 needs n%8 == 0, n > 0.")
	y, x, n := pointer("y"), pointer("x"), pointer("n")
	lift, times := spread("lift"), spread("times")
	Label("eight")
	v, w := YMM(), YMM()
	VMOVDQU(at(x, 0), v)
	VPSUBD(lift, v, v)
	VPMULLD(times, v, v)
	VMOVDQU(at(y, 0), w)
	VPSUBD(v, w, w)
	VMOVDQU(w, at(y, 0))
	advance(x, vector)
	advance(y, vector)
	SUBQ(U32(8), n)
	JNZ(LabelRef("eight"))
	finish()
}

// gemmLess subtracts one number from int32 sums.
func gemmLess() {
	function("lessAVX2", "func(y *int32, n int, v uint32)", "lessAVX2 needs n%8 == 0, n > 0.")
	y, n := pointer("y"), pointer("n")
	v := spread("v")
	Label("eight")
	w := YMM()
	VMOVDQU(at(y, 0), w)
	VPSUBD(v, w, w)
	VMOVDQU(w, at(y, 0))
	advance(y, vector)
	SUBQ(U32(8), n)
	JNZ(LabelRef("eight"))
	finish()
}
