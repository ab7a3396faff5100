package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// copyRows copies rows in whole vectors and a last one that overlaps, as a masked store takes longer; rows that are
// shorter than a vector in halves of it, or one by one.
func copyRows() {
	function("copyRowsAVX2", "func(dst *float32, to int, x *float32, from, rows, n int)",
		"copyRowsAVX2 copies rows of n > 0 elements; steps in bytes, rows > 0.")
	dst, to, x, from, rows, n := pointer("dst"), pointer("to"), pointer("x"), pointer("from"), pointer("rows"),
		pointer("n")
	next := func(label string) {
		ADDQ(from, x)
		ADDQ(to, dst)
		DECQ(rows)
		JNZ(LabelRef(label))
		finish()
	}
	SHLQ(U8(2), n)
	last := func(size int) GPVirtual {
		end := GP64()
		LEAQ(Mem{Base: n, Disp: -size}, end)
		return end
	}
	move := func(i GPVirtual, v VecVirtual) {
		VMOVUPS(Mem{Base: x, Index: i, Scale: 1}, v)
		VMOVUPS(v, Mem{Base: dst, Index: i, Scale: 1})
	}
	CMPQ(n, U8(vector))
	JLT(LabelRef("short"))
	end, i := last(vector), GP64()
	Label("row")
	XORQ(i, i)
	JMP(LabelRef("test"))
	Label("whole")
	move(i, YMM())
	advance(i, vector)
	Label("test")
	CMPQ(i, end)
	JLT(LabelRef("whole"))
	move(end, YMM())
	next("row")

	Label("short")
	CMPQ(n, U8(vector/2))
	JLT(LabelRef("shorter"))
	half := last(vector / 2)
	Label("halves")
	first, second := XMM(), XMM()
	VMOVUPS(Mem{Base: x}, first)
	VMOVUPS(Mem{Base: x, Index: half, Scale: 1}, second)
	VMOVUPS(first, Mem{Base: dst})
	VMOVUPS(second, Mem{Base: dst, Index: half, Scale: 1})
	next("halves")

	Label("shorter")
	at, element := GP64(), GP32()
	Label("few")
	MOVQ(n, at)
	Label("one")
	MOVL(Mem{Base: x, Index: at, Scale: 1, Disp: -4}, element)
	MOVL(element, Mem{Base: dst, Index: at, Scale: 1, Disp: -4})
	SUBQ(U8(4), at)
	JNZ(LabelRef("one"))
	next("few")
}
