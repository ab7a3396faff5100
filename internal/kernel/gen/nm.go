package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// nmDoc documents the counts of both functions: for each element minus its rank in its group of four. Elements of rank
// 4-n or more are kept, so n-3 must exceed the negated rank.
const nmDoc = " keeps the n largest of each four; limit is n-3, "

func nmRows() {
	function("nmRows4AVX2", "func(x *float32, count int, limit int32)", "nmRows4AVX2"+nmDoc+"count%8 == 0.")
	x, n, limit, mask := pointer("x"), pointer("count"), spread("limit"), constant(magnitude)
	turns := []struct {
		shuffle U8
		earlier VecVirtual // -1 where the incoming lane has the lower index
	}{
		{0x39, fours("turn1", 0, 0, 0, 1)},
		{0x4e, fours("turn2", 0, 0, 1, 1)},
		{0x93, fours("turn3", 0, 1, 1, 1)},
	}
	strips("groups", n, 8, func() {
		v, rank := YMM(), zero()
		VPAND(at(x, 0), mask, v)
		for _, t := range turns {
			other := YMM()
			VPSHUFD(t.shuffle, v, other)
			VPADDD(t.earlier, other, other) // one less, so that "greater" includes "equal"
			VPCMPGTD(other, v, other)
			VPADDD(other, rank, rank)
		}
		VPCMPGTD(rank, limit, rank)
		VPAND(at(x, 0), rank, rank)
		VMOVDQU(rank, at(x, 0))
		advance(x, vector)
	})
	finish()
}

// fours repeats four flags over a vector, as 0 and -1.
func fours(name string, a, b, c, d uint32) VecVirtual {
	y := YMM()
	VMOVDQU(words(name, -a, -b, -c, -d, -a, -b, -c, -d), y)
	return y
}

func nmCols() {
	function("nmCols4AVX2", "func(x *float32, stride, cols int, limit int32)",
		"nmCols4AVX2"+nmDoc+"rows are stride bytes apart, cols%8 == 0.")
	x, stride, n := pointer("x"), pointer("stride"), pointer("cols")
	rows, limit, mask, off := rowPointers(x, stride, 4), spread("limit"), constant(magnitude), GP64()
	one, two, three := constant(0xffffffff), constant(0xfffffffe), constant(0xfffffffd)
	XORQ(off, off)
	strips("columns", n, 8, func() {
		nmColumn(rows, off, limit, mask, []VecVirtual{one, two, three})
		advance(off, vector)
	})
	finish()
}

// nmColumn ranks by pairs: the earlier of two is above the later only if greater. Ranks start
// with all earlier ones below.
func nmColumn(rows []Register, off Register, limit, mask VecVirtual, start []VecVirtual) {
	var v, rank [4]VecVirtual
	for i, row := range rows {
		v[i], rank[i] = YMM(), YMM()
		VPAND(Mem{Base: row, Index: off, Scale: 1}, mask, v[i])
		if i == 0 {
			VPXOR(rank[0], rank[0], rank[0])
		} else {
			VMOVDQA(start[i-1], rank[i])
		}
	}
	for i := range v {
		for j := range i {
			greater := YMM()
			VPCMPGTD(v[i], v[j], greater)
			VPADDD(greater, rank[j], rank[j])
			VPSUBD(greater, rank[i], rank[i])
		}
	}
	for i, row := range rows {
		VPCMPGTD(rank[i], limit, rank[i])
		VPAND(Mem{Base: row, Index: off, Scale: 1}, rank[i], rank[i])
		VMOVDQU(rank[i], Mem{Base: row, Index: off, Scale: 1})
	}
}
