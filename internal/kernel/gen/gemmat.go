package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gemmAt multiplies strips of rows by a panel of 16 columns; elements of a row are at the offsets of a table.
func gemmAt(t tile) {
	name := fmt.Sprintf("gemmAt%dx%d%s", t.rows, t.cols, t.width.name)
	function(name, "func(strips int, x *float32, row int, at *int64, k int, b *float32, c *float32, cRow int)",
		name+" adds products to c; strides in bytes; strips and k > 0.")
	x, row, c, cRow, strips := pointer("x"), pointer("row"), pointer("c"), pointer("cRow"), pointer("strips")
	offsets, b, k := GP64(), GP64(), GP64()
	tiles := strided{stride: cRow}
	windows := strided{stride: row}
	for range t.rows / 3 {
		tiles.base, windows.base = append(tiles.base, GP64()), append(windows.base, GP64())
	}
	Label("strip")
	Load(Param("at"), offsets)
	Load(Param("b"), b)
	Load(Param("k"), k)
	sums, multiply := t.zeros(), t.numbers.multiplier()
	Label("step")
	MOVQ(Mem{Base: offsets}, windows.base[0])
	LEAQ(Mem{Base: x, Index: windows.base[0], Scale: 4}, windows.base[0])
	windows.from(windows.base[0])
	t.step(windows, strided{base: []GPVirtual{b}}, sums, multiply)
	advance(offsets, 8)
	advance(b, panelBytes)
	DECQ(k)
	JNZ(LabelRef("step"))
	MOVQ(c, tiles.base[0])
	tiles.from(tiles.base[0])
	for r, row := range sums {
		for i, s := range row {
			VADDPS(tiles.at(r, i*t.width.bytes), s, s)
			VMOVUPS(s, tiles.at(r, i*t.width.bytes))
		}
	}
	for range t.rows / 3 {
		skipThree(x, row)
		skipThree(c, cRow)
	}
	DECQ(strips)
	JNZ(LabelRef("strip"))
	finish()
}

// skipThree advances by three rows.
func skipThree(p, stride Register) {
	LEAQ(Mem{Base: p, Index: stride, Scale: 2}, p)
	ADDQ(stride, p)
}
