package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gemmFinishFamily is products whose sums are finished in registers: 12 rows in AVX-512 and 6 in AVX2, and fewer for
// the rest.
func gemmFinishFamily() {
	for _, rows := range []int{12, 8, 4, 2, 1} {
		for _, cols := range []int{16, 32} {
			finishedTile{tile{rows, cols, zmm, floats}}.emit()
		}
	}
	for _, t := range [][2]int{{6, 16}, {5, 16}, {4, 16}, {3, 16}, {3, 32}, {2, 16}, {2, 32}, {1, 16}, {1, 64},
		{6, 8}, {12, 8}} {
		finishedTile{tile{t[0], t[1], ymm, floats}}.emit()
	}
	for _, t := range []tile{{6, 16, ymm, floats}, {12, 16, zmm, floats}, {12, 32, zmm, floats}} {
		finishedTile{t}.emitAt()
	}
}

// A finishedTile adds a bias to each column and bounds the sums before they are stored. It runs over strips of rows, as
// sums of few products take little longer than a call. In AVX-512 columns have masks; AVX2's stores with masks are slow
// on some processors.
type finishedTile struct{ tile }

func (t finishedTile) emit() {
	masks, columns := "", ""
	if t.width.wide() {
		masks, columns = ", low, high uint16", ", in the columns of two masks"
	}
	ahead := ""
	if t.prefetches() {
		ahead = t.prefetched()
	}
	name := fmt.Sprintf("gemmFinish%dx%d%s", t.rows, t.cols, t.width.name)
	function(name, "func(strips, k int, a *float32, aRow, aK, aStrip int, b *float32, bK, bPanel int, c *float32, "+
		"cRow, add int, bias *float32, lo, hi float32"+masks+ahead+")",
		name+" stores a·b, plus c if add is set, plus bias, between lo and hi"+columns+
			"; strides in bytes; strips, k > 0.")
	Label("strip")
	k := pointer("k")
	a, b := t.operand("a", "aRow", t.rows), t.operand("b", "bPanel", (t.row()+panelBytes-1)/panelBytes)
	aK, bK := pointer("aK"), pointer("bK")
	sums, multiply := t.zeros(), t.numbers.multiplier()
	t.touch(t.operand("c", "cRow", t.rows))
	prefetch := func() {}
	if t.prefetches() {
		prefetch = t.prefetch()
	}
	step := func() {
		t.step(a, b, sums, multiply)
		a.advance(aK)
		b.advance(bK)
	}
	strips("four", k, 4, func() {
		prefetch()
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
	c, add, masks := t.operand("c", "cRow", t.rows), pointer("add"), t.masks()
	TESTQ(add, add)
	JZ(LabelRef("bias"))
	for r, row := range sums {
		for i, s := range row {
			VADDPS(t.load(c.at(r, i*t.width.bytes), masks, i), s, s)
		}
	}
	Label("bias")
	t.bound(sums, c, masks)
}

// bound adds the bias to the sums, bounds and stores them.
func (t finishedTile) bound(sums [][]VecVirtual, c strided, masks []Register) {
	bias, lo, hi := pointer("bias"), t.width.new(), t.width.new()
	VBROADCASTSS(parameter("lo"), lo)
	VBROADCASTSS(parameter("hi"), hi)
	for i := range t.vectors() {
		v := t.load(t.width.at(bias, i), masks, i)
		for r := range sums {
			s := sums[r][i]
			VADDPS(v, s, s)
			// The sum is the operand that MAXPS and MINPS return for NaN.
			VMAXPS(s, lo, s)
			VMINPS(s, hi, s)
			t.save(s, c.at(r, i*t.width.bytes), masks, i)
		}
	}
}

// masks are those of the vectors of a row, none in AVX2.
func (t finishedTile) masks() (masks []Register) {
	if !t.width.wide() {
		return nil
	}
	for _, name := range []string{"low", "high"}[:t.vectors()] {
		mask := K()
		KMOVW(parameter(name), mask)
		masks = append(masks, mask)
	}
	return masks
}

// load loads vector i of a row.
func (t finishedTile) load(from Mem, masks []Register, i int) VecVirtual {
	v := t.width.new()
	if masks == nil {
		VMOVUPS(from, v)
	} else {
		VMOVUPS_Z(from, masks[i], v)
	}
	return v
}

// save stores vector i of a row.
func (t finishedTile) save(v VecVirtual, to Mem, masks []Register, i int) {
	if masks == nil {
		VMOVUPS(v, to)
	} else {
		VMOVUPS(v, masks[i], to)
	}
}

// next advances to the next strip, whose pointers are in the parameters.
func (t finishedTile) next() {
	step := pointer("aStrip")
	ADDQ(step, parameter("a"))
	t.nextRows("c", "cRow")
	if t.prefetches() {
		prefetched := pointer("lines")
		// Lines per panel of k steps: the next strip continues where this one ended.
		IMULQ(parameter("k"), prefetched)
		SHLQ(U8(4), prefetched)
		ADDQ(prefetched, parameter("ahead"))
	}
	DECQ(parameter("strips"))
	JNZ(LabelRef("strip"))
}

// nextRows advances the pointer in a parameter by the rows of the tile, which are a stride apart.
func (t finishedTile) nextRows(p, stride string) {
	row := pointer(stride)
	IMUL3Q(U8(t.rows), row, row)
	ADDQ(row, parameter(p))
}
