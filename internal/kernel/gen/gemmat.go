package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// emitAt multiplies strips of rows whose elements are at the offsets of a table.
func (t finishedTile) emitAt() {
	name := fmt.Sprintf("gemmAt%dx%d%s", t.rows, t.cols, t.width.name)
	function(name, "func(strips int, x *float32, row int, at *int64, k int, b *float32, bPanel int, c *float32, cRow "+
		"int, bias *float32, lo, hi float32)",
		name+" stores products plus bias, between lo and hi; strides in bytes; strips, k > 0.")
	Label("strip")
	x, offsets, k := pointer("x"), pointer("at"), pointer("k")
	b := t.operand("b", "bPanel", t.row()/panelBytes)
	windows := strided{stride: pointer("row")}
	for range t.rows / 3 {
		windows.base = append(windows.base, GP64())
	}
	sums, multiply := t.zeros(), t.numbers.multiplier()
	Label("step")
	// Rows of the left operand are windows a fixed distance apart: one offset of the tap serves all of them.
	MOVQ(Mem{Base: offsets}, windows.base[0])
	LEAQ(Mem{Base: x, Index: windows.base[0], Scale: 4}, windows.base[0])
	windows.from(windows.base[0])
	t.step(windows, b, sums, multiply)
	advance(offsets, 8)
	for _, p := range b.base {
		advance(p, panelBytes)
	}
	DECQ(k)
	JNZ(LabelRef("step"))
	t.bound(sums, t.operand("c", "cRow", t.rows), nil)
	t.nextRows("x", "row")
	t.nextRows("c", "cRow")
	DECQ(parameter("strips"))
	JNZ(LabelRef("strip"))
	finish()
}
