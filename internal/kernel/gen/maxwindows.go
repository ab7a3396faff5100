package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// maxWindows computes the maxima of 16 columns first, and then those of two or three of them: the first column of a
// window of three is the last one of the window before it.
func maxWindows(name string, triples bool) {
	signature := "func(y, x *float32, n int, at *int64, rows int)"
	if triples {
		signature = "func(y, x *float32, n int, at *int64, rows int, first float32)"
	}
	function(name, signature, name+" needs n%8 == 0 and rows > 0.")
	y, x, n := pointer("y"), pointer("x"), pointer("n")
	before := YMM()
	if triples {
		VBROADCASTSS(parameter("first"), before)
	}
	offsets, rows, row := GP64(), GP64(), GP64()
	strips("windows", n, 8, func() {
		Load(Param("at"), offsets)
		Load(Param("rows"), rows)
		load := func() []VecVirtual {
			MOVQ(Mem{Base: offsets}, row)
			return each(2, func(i int) VecVirtual {
				v := YMM()
				VMOVUPS(Mem{Base: x, Index: row, Scale: 4, Disp: i * vector}, v)
				return v
			})
		}
		columns := load()
		JMP(LabelRef("next"))
		Label("row")
		for i, v := range load() {
			VMOVAPS(maxPS(columns[i], v), columns[i])
		}
		Label("next")
		advance(offsets, 8)
		DECQ(rows)
		JNZ(LabelRef("row"))
		even, odd := YMM(), YMM()
		// Even and odd columns, within halves of 128 bits; VPERMPD puts the halves in order.
		VSHUFPS(U8(0x88), columns[1], columns[0], even)
		VSHUFPS(U8(0xdd), columns[1], columns[0], odd)
		VPERMPD(U8(0xd8), odd, odd)
		VPERMPD(U8(0xd8), even, even)
		top := maxPS(even, odd)
		if triples {
			left := YMM()
			// The odd column before each window: the lanes of odd, moved up by one, after the last lane of the vector
			// before.
			VPERM2F128(U8(0x21), odd, before, left)
			VPALIGNR(U8(12), left, odd, left)
			top = maxPS(top, left)
			VMOVAPS(odd, before)
		}
		VMOVUPS(top, at(y, 0))
		advance(x, 2*vector)
		advance(y, vector)
	})
	finish()
}
