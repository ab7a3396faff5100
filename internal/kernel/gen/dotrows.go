package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dotRows multiplies four rows at a time by a, whose conversion they share. Lanes and the order of their sums are those
// of Dot.
func dotRows() {
	function("dotRowsAVX2", "func(dst, a, rows *float32, stride, k, n int, factor float32)",
		"dotRowsAVX2 needs FMA, and sets n numbers to the products of a with rows that are stride bytes apart, times "+
			"factor; k%8 == 0, n%4 == 0, both not 0.")
	dst, rows, stride, n, factor := pointer("dst"), pointer("rows"), pointer("stride"), pointer("n"), XMM()
	VBROADCASTSS(parameter("factor"), factor)
	triple := GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, triple)
	Label("rows")
	var low, high [4]VecVirtual
	for i := range low {
		low[i], high[i] = zero(), zero()
	}
	a, k, row := pointer("a"), pointer("k"), GP64()
	MOVQ(rows, row)
	Label("products")
	for half, sums := range [][4]VecVirtual{low, high} {
		x := YMM()
		VCVTPS2PD(Mem{Base: a, Disp: 16 * half}, x)
		for i, m := range []Mem{{Base: row}, {Base: row, Index: stride, Scale: 1},
			{Base: row, Index: stride, Scale: 2}, {Base: row, Index: triple, Scale: 1}} {
			m.Disp = 16 * half
			y := YMM()
			VCVTPS2PD(m, y)
			VFMADD231PD(x, y, sums[i])
		}
	}
	advance(a, vector)
	advance(row, vector)
	SUBQ(U8(8), k)
	JNZ(LabelRef("products"))
	foldRows(low, high)
	VCVTPD2PSY(low[0], low[0].AsX())
	VPERMILPS(U8(0xd8), low[0].AsX(), low[0].AsX()) // the order of rows is 0, 2, 1, 3
	VMULPS(factor, low[0].AsX(), low[0].AsX())
	VMOVUPS(low[0].AsX(), Mem{Base: dst})
	advance(dst, 16)
	LEAQ(Mem{Base: rows, Index: stride, Scale: 4}, rows)
	SUBQ(U8(4), n)
	JNZ(LabelRef("rows"))
	finish()
}

// foldRows sums the eight lanes of each row to a lane of low[0].
func foldRows(low, high [4]VecVirtual) {
	for i := range low {
		VADDPD(high[i], low[i], low[i])
	}
	for _, i := range []int{0, 2} {
		VPERM2F128(U8(0x31), low[i+1], low[i], high[i])
		VPERM2F128(U8(0x20), low[i+1], low[i], low[i])
		VADDPD(high[i], low[i], low[i])
	}
	VHADDPD(low[2], low[0], low[0])
}
