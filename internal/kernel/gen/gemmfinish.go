package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gemmFinishFamily is products whose sums are finished in registers: 12 rows, and fewer for the rest.
func gemmFinishFamily() {
	for _, rows := range []int{12, 8, 4, 2, 1} {
		for _, cols := range []int{16, 32} {
			finishedTile{tile{rows, cols, zmm, floats}}.emit()
		}
	}
}

// A finishedTile adds a bias to each column and bounds the sums before they are stored. It runs over strips of rows, as sums of few products
// take little longer than a call.
type finishedTile struct{ tile }

func (t finishedTile) emit() {
	name := fmt.Sprintf("gemmFinish%dx%dAVX512", t.rows, t.cols)
	function(name, "func(strips, k int, a *float32, aRow, aK, aStrip int, b *float32, bK, bPanel int, c *float32, cRow, add int, bias *float32, lo, hi float32, low, high uint16)",
		name+" stores a·b, plus c if add is set, plus bias, between lo and hi, in the columns of two masks; strides in bytes; strips, k > 0.")
	Label("strip")
	k := pointer("k")
	a, b := t.operand("a", "aRow", t.rows), t.operand("b", "bPanel", t.vectors())
	aK, bK := pointer("aK"), pointer("bK")
	sums, multiply := t.zeros(), t.numbers.multiplier()
	t.touch(t.operand("c", "cRow", t.rows))
	step := func() {
		t.step(a, b, sums, multiply)
		a.advance(aK)
		b.advance(bK)
	}
	strips("four", k, 4, func() {
		for range 4 {
			step()
		}
	})
	strips("one", k, 1, step)
	t.finish(sums)
	t.next()
	finish()
}

// finish adds to the sums, bounds and stores them.
func (t finishedTile) finish(sums [][]VecVirtual) {
	c, bias, add := t.operand("c", "cRow", t.rows), pointer("bias"), pointer("add")
	var masks []Register
	for _, name := range []string{"low", "high"}[:t.vectors()] {
		mask := K()
		KMOVW(parameter(name), mask)
		masks = append(masks, mask)
	}
	TESTQ(add, add)
	JZ(LabelRef("bias"))
	for r, row := range sums {
		for i, s := range row {
			v := t.width.new()
			VMOVUPS_Z(c.at(r, i*t.width.bytes), masks[i], v)
			VADDPS(v, s, s)
		}
	}
	Label("bias")
	lo, hi := t.width.new(), t.width.new()
	VBROADCASTSS(parameter("lo"), lo)
	VBROADCASTSS(parameter("hi"), hi)
	for i, mask := range masks {
		v := t.width.new()
		VMOVUPS_Z(t.width.at(bias, i), mask, v)
		for r := range sums {
			s := sums[r][i]
			VADDPS(v, s, s)
			VMAXPS(s, lo, s)
			VMINPS(s, hi, s)
			VMOVUPS(s, mask, c.at(r, i*t.width.bytes))
		}
	}
}

// next advances to the next strip, whose pointers are in the parameters.
func (t finishedTile) next() {
	step := pointer("aStrip")
	ADDQ(step, parameter("a"))
	row := pointer("cRow")
	IMUL3Q(U8(t.rows), row, row)
	ADDQ(row, parameter("c"))
	DECQ(parameter("strips"))
	JNZ(LabelRef("strip"))
}
