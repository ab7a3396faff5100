package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gemmFamily is the matrix product: tiles of rows by columns, of which 16 are a panel. Tiles of few rows span several
// panels, because a sum has a latency of four cycles.
func gemmFamily() {
	for _, t := range []tile{
		{1, 16, ymm, floats}, {1, 64, ymm, floats}, {2, 16, ymm, floats}, {2, 32, ymm, floats}, {3, 16, ymm, floats},
		{3, 32, ymm, floats},
		{4, 16, ymm, floats}, {5, 16, ymm, floats}, {6, 16, ymm, floats}, {6, 8, ymm, floats}, {12, 8, ymm, floats},
		{4, 16, zmm, floats}, {4, 32, zmm, floats}, {8, 16, zmm, floats}, {8, 32, zmm, floats}, {12, 16, zmm, floats},
		{12, 32, zmm, floats},
		{1, 16, ymm, pairs}, {2, 16, ymm, pairs}, {3, 16, ymm, pairs}, {4, 16, ymm, pairs},
		{1, 16, zmm, bytes}, {1, 64, zmm, bytes}, {4, 16, zmm, bytes}, {4, 32, zmm, bytes}, {8, 16, zmm, bytes},
		{8, 32, zmm, bytes},
		{12, 16, zmm, bytes}, {12, 32, zmm, bytes},
	} {
		t.emit()
	}
	for _, t := range []intTile{{1, 16}, {2, 16}, {3, 8}, {4, 8}, {5, 8}, {6, 8}} {
		t.emit()
	}
	requantizePairs()
	gemmQuads()
	gemmWiden("widenUnsignedAVX2", VPMOVZXBW)
	gemmWiden("widenSignedAVX2", VPMOVSXBW)
	gemmFlip()
	gemmShuffle(1)
	gemmShuffle(4)
	gemmQuadSums()
	gemv(1)
	gemv(4)
	packRows()
	packColumns()
	packSix()
	packSixes()
	gemmLessTimes()
	gemmLess()
}

// panelBytes is a row of a panel: 16 float32 or 8 float64.
const panelBytes = 64

// A tile is rows by cols elements of the result that are summed in registers; cols is whole panels
// or half of one.
type tile struct {
	rows, cols int
	width      width
	numbers    numbers
}

// A width is a kind of vector registers.
type width struct {
	name  string
	bytes int
	new   func() VecVirtual
}

var (
	ymm = width{"AVX2", 32, YMM}
	zmm = width{"AVX512", 64, ZMM}
)

func (w width) wide() bool { return w.bytes == panelBytes }

// perPanel is the number of registers of a row of a panel.
func (w width) perPanel() int { return panelBytes / w.bytes }

func (w width) zero() VecVirtual {
	v := w.new()
	if w.wide() {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
	return v
}

// constant fills all lanes with v.
func (w width) constant(v uint32) VecVirtual {
	y := constant(v)
	if !w.wide() {
		return y
	}
	z := w.new()
	VPBROADCASTD(y.AsX(), z)
	return z
}

func (w width) or(a, b, to Op) {
	if w.wide() {
		VPORD(a, b, to)
	} else {
		VPOR(a, b, to)
	}
}

// andNot is b without the bits of a.
func (w width) andNot(a, b, to Op) {
	if w.wide() {
		VPANDND(b, a, to)
	} else {
		VPANDN(b, a, to)
	}
}

// constant64 fills all 64-bit lanes with v.
func (w width) constant64(v uint64) VecVirtual {
	y := constant64(v)
	if !w.wide() {
		return y
	}
	z := w.new()
	VPBROADCASTQ(y.AsX(), z)
	return z
}

func (w width) and(a, b, to Op) {
	if w.wide() {
		VPANDD(a, b, to)
	} else {
		VPAND(a, b, to)
	}
}

// at is the i-th register after p.
func (w width) at(p Register, i int) Mem { return Mem{Base: p, Disp: i * w.bytes} }

func (w width) loaded(p Register, i int) VecVirtual {
	v := w.new()
	VMOVUPS(w.at(p, i), v)
	return v
}

// repeated loads a table of 32 bytes, which fills the register.
func (w width) repeated(table Mem) VecVirtual {
	v := w.new()
	if w.wide() {
		VBROADCASTF64X4(table, v)
	} else {
		VMOVUPS(table, v)
	}
	return v
}

// operand is a table of 32 bytes, loaded if it has to fill more.
func (w width) operand(table Mem) Op {
	if w.wide() {
		return w.repeated(table)
	}
	return table
}

// ofPanel is register i of panels that are a distance apart.
func (w width) ofPanel(base, distance Register, i int) Mem {
	return w.ofPanelBytes(base, distance, i, w.bytes)
}

// ofPanelBytes is ofPanel of elements for a register that have a size in bytes together.
func (w width) ofPanelBytes(base, distance Register, i, size int) Mem {
	m := Mem{Base: base, Disp: i % w.perPanel() * size}
	if i >= w.perPanel() {
		m.Index, m.Scale = distance, 1
	}
	return m
}

// numbers are the multiplied types: words of A, each repeated, by words of B, into words of C. A word is a float32, a
// float64, or four bytes, uint8 of A and int8 of B, whose four products are summed into one int32. VPDPBUSD, unlike
// similar instructions, does not saturate; the sums of pairs, of VPMADDUBSW, do.
type numbers struct {
	name, a, b, c  string
	word           int // bytes
	repeat, addTwo func(...Op)
	multiplier     func() func(...Op) // loads constants and returns the multiplication
	first          bool               // sums to start with have a parameter
}

var (
	floats = numbers{"gemm", "*float32", "*float32", "*float32", 4, VBROADCASTSS, VADDPS, instruction(VFMADD231PS),
		false}
	bytes = numbers{"gemmBytes", "*byte", "*byte", "*int32", 4, VPBROADCASTD, VPADDD, instruction(VPDPBUSD), true}
	pairs = numbers{"gemmPairs", "*byte", "*byte", "*int32", 4, VPBROADCASTD, VPADDD, multiplyPairs, false}
)

func instruction(f func(...Op)) func() func(...Op) { return func() func(...Op) { return f } }

// multiplyPairs sums two products as int16, which must fit, and two such sums as int32.
func multiplyPairs() func(...Op) {
	ones := constant(1<<16 | 1)
	return func(o ...Op) {
		p := YMM()
		VPMADDUBSW(o[0], o[1], p)
		VPMADDWD(ones, p, p)
		VPADDD(p, o[2], o[2])
	}
}

// emit multiplies: every element of the tile is one sum over k, in order, so that tiles of all shapes and widths are
// bit-identical.
func (t tile) emit() {
	name, added, doc := fmt.Sprintf("%s%dx%d%s", t.numbers.name, t.rows, t.cols, t.width.name), ", add int",
		"a·b, or adds it to c; strides in bytes."
	if t.numbers.first {
		added, doc = ", first "+t.numbers.c+", firstRow int", "first+a·b, a·b if first is nil; strides in bytes."
	}
	switch {
	case !t.prefetches():
	case t.numbers.first:
		added, doc = added+", ahead int", doc+" It prefetches a line for every four steps of k, ahead bytes after b."
	default:
		added, doc = added+t.prefetched(), doc+" It prefetches 1, 2 or 4 lines of each panel for every four steps of k, "+
			"the first ahead bytes after b."
	}
	function(name,
		fmt.Sprintf("func(k int, a %s, aRow, aK int, b %s, bK, bPanel int, c %s, cRow int%s)", t.numbers.a,
			t.numbers.b, t.numbers.c, added),
		name+" stores "+doc)
	// C is written at the end only, so its lines arrive during the sum.
	t.touch(t.operand("c", "cRow", t.rows))
	k := pointer("k")
	a, b := t.operand("a", "aRow", t.rows), t.operand("b", "bPanel", (t.row()+panelBytes-1)/panelBytes)
	aK, bK := pointer("aK"), pointer("bK")
	sums, multiply := t.zeros(), t.numbers.multiplier()
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
	t.addTo(sums)
	t.store(t.operand("c", "cRow", t.rows), sums)
	finish()
}

// prefetches reports whether the tile is that of the first rows of most products, which read all of B.
func (t tile) prefetches() bool {
	switch {
	case !t.width.wide():
		return t.rows == 6 && t.cols == 16
	case t.numbers.first:
		return t.rows == 12 && t.cols == 32
	}
	return t.rows >= 8 && t.cols == 32
}

// prefetched are the parameters of what a tile prefetches: an offset from b, that of the second panel from there, and
// the number of lines.
func (t tile) prefetched() string {
	if t.row() > panelBytes {
		return ", ahead, second, lines int"
	}
	return ", ahead, lines int"
}

// prefetch returns a function that prefetches for four steps of k.
func (t tile) prefetch() func() {
	ahead := strided{base: []GPVirtual{pointer("ahead")}}
	ADDQ(parameter("b"), ahead.base[0])
	if t.numbers.first {
		return func() {
			PREFETCHT1(ahead.at(0, 0))
			advance(ahead.base[0], panelBytes)
		}
	}
	if t.row() > panelBytes {
		ahead.stride = pointer("second")
	}
	lines := pointer("lines")
	line := func(i int) {
		for panel := range t.row() / panelBytes {
			PREFETCHT1(ahead.at(panel, i*panelBytes))
		}
	}
	return func() {
		line(0)
		for _, more := range []int{1, 2} {
			CMPQ(lines, U8(2*more))
			JLT(LabelRef("prefetched"))
			for i := range more {
				line(1 + i)
			}
			advance(ahead.base[0], more*panelBytes)
		}
		Label("prefetched")
		advance(ahead.base[0], panelBytes)
	}
}

// row is the size in bytes of a row of the tile.
func (t tile) row() int { return t.numbers.word * t.cols }

// vectors is the number of registers of a row of the tile.
func (t tile) vectors() int { return t.row() / t.width.bytes }

// zeros are the sums of the tile, by row and vector of the row.
func (t tile) zeros() [][]VecVirtual {
	sums := make([][]VecVirtual, t.rows)
	for r := range sums {
		for range t.vectors() {
			sums[r] = append(sums[r], t.width.zero())
		}
	}
	return sums
}

// step is one step of k. The smaller operand stays in registers, so that the sums have the others.
func (t tile) step(a, b strided, sums [][]VecVirtual, multiply func(...Op)) {
	left := func(r int) VecVirtual {
		x := t.width.new()
		t.numbers.repeat(a.at(r, 0), x)
		return x
	}
	right := func(i int) VecVirtual {
		y := t.width.new()
		VMOVUPS(b.at(i*t.width.bytes/panelBytes, i*t.width.bytes%panelBytes), y)
		return y
	}
	wide := t.vectors()
	if t.rows < wide {
		x := each(t.rows, left)
		for i := range wide {
			y := right(i)
			for r := range x {
				multiply(y, x[r], sums[r][i])
			}
		}
		return
	}
	y := each(wide, right)
	for r := range t.rows {
		x := left(r)
		for i := range y {
			multiply(y[i], x, sums[r][i])
		}
	}
}

func each(n int, f func(i int) VecVirtual) []VecVirtual {
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

// touch prefetches the tile of c while the sums are computed.
func (t tile) touch(c strided) {
	for r := range t.rows {
		for i := 0; i < t.row(); i += panelBytes {
			PREFETCHT0(c.at(r, i))
		}
	}
}

// addTo adds the sums that are there: those of c, or first.
func (t tile) addTo(sums [][]VecVirtual) {
	from, row, added := "c", "cRow", "add"
	if t.numbers.first {
		from, row, added = "first", "firstRow", "first"
	}
	add := pointer(added)
	TESTQ(add, add)
	JZ(LabelRef("store"))
	m := t.operand(from, row, t.rows)
	for r, row := range sums {
		for i, s := range row {
			t.numbers.addTwo(m.at(r, i*t.width.bytes), s, s)
		}
	}
	Label("store")
}

func (t tile) store(c strided, sums [][]VecVirtual) {
	for r, row := range sums {
		for i, s := range row {
			VMOVUPS(s, c.at(r, i*t.width.bytes))
		}
	}
}

// strided are rows that are a stride apart, addressed with one pointer per three rows.
type strided struct {
	base   []GPVirtual
	stride GPVirtual
}

func (t tile) operand(name, stride string, rows int) strided {
	s := strided{[]GPVirtual{pointer(name)}, pointer(stride)}
	for r := 3; r < rows; r += 3 {
		s.base = append(s.base, GP64())
	}
	s.from(s.base[0])
	return s
}

// from starts at the row that first points to.
func (s strided) from(first GPVirtual) {
	if first != s.base[0] {
		MOVQ(first, s.base[0])
	}
	for i, next := range s.base[1:] {
		LEAQ(Mem{Base: s.base[i], Index: s.stride, Scale: 2}, next)
		ADDQ(s.stride, next)
	}
}

// at is the address bytes after the start of a row.
func (s strided) at(row, bytes int) Mem {
	m := Mem{Base: s.base[row/3], Disp: bytes}
	if row%3 > 0 {
		m.Index, m.Scale = s.stride, uint8(row%3)
	}
	return m
}

// advance advances by step bytes.
func (s strided) advance(step Register) {
	for _, p := range s.base {
		ADDQ(step, p)
	}
}
