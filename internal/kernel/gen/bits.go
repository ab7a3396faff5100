package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// bitsFamily dequantizes and multiplies weights of a few bits: panels of 16 columns, in which a word of 32 bits is
// consecutive rows of a column.
func bitsFamily() {
	for _, v := range []bitFormat{{2, false}, {4, false}, {8, false}, {4, true}, {8, true}} {
		for _, w := range []width{ymm, zmm} {
			if v == (bitFormat{8, true}) && w.wide() { // loads of the table limit it
				continue
			}
			v.panel(w)
			v.row(1, w)
			if v != (bitFormat{8, true}) { // two panels would need more registers
				v.row(2, w)
			}
		}
	}
	c := newRow4Tables()
	rows := int8Rows()
	for _, w := range []width{ymm, zmm} {
		for panels := 1; panels <= 2; panels++ {
			row4(panels, w, c)
			for _, r := range rows {
				r.row(panels, w)
			}
		}
	}
}

// A bitFormat is the form of values of some bits: integers, or indices into a table.
type bitFormat struct {
	bits  int
	table bool
}

func (q bitFormat) name(of string) string {
	if q.table {
		of += "Table"
	}
	return fmt.Sprintf("%s%d", of, q.bits)
}

// parameter is that of a function: zero points, or a table.
func (q bitFormat) parameter() string {
	if q.table {
		return "table"
	}
	return "zero"
}

// A reader leaves value j of the words, which it shifts from value to value, and multiplies it by a scale. zero is that
// of integers.
type reader func(words VecVirtual, j int, zero, scale Op) VecVirtual

// reader prepares a function.
func (q bitFormat) reader(table Register, w width) reader {
	mask := w.constant(1<<q.bits - 1)
	var entries []VecVirtual
	if q.table && q.bits == 4 {
		entries = each(w.perPanel(), func(i int) VecVirtual { return w.loaded(table, i) })
	}
	return func(words VecVirtual, j int, zero, scale Op) VecVirtual {
		if j > 0 {
			VPSRLD(U8(q.bits), words, words)
		}
		v := w.new()
		switch {
		case !q.table:
			w.and(mask, words, v)
			VCVTDQ2PS(v, v)
			VSUBPS(zero, v, v)
		case q.bits == 4 && w.wide():
			VPERMPS(entries[0], words, v)
		// A permutation has eight entries: bit 3 of the index, moved to the sign, selects between two of them.
		case q.bits == 4:
			half := YMM()
			VPERMPS(entries[0], words, v)
			VPERMPS(entries[1], words, half)
			upper := YMM()
			VPSLLD(U8(28), words, upper)
			VBLENDVPS(upper, half, v, v)
		// 256 entries are in memory: the gather's mask is used up by it, so it is set for each.
		default:
			index, all := YMM(), YMM()
			VPAND(mask, words, index)
			VPCMPEQD(all, all, all)
			VGATHERDPS(all, Mem{Base: table, Index: index, Scale: 4}, v)
		}
		VMULPS(scale, v, v)
		return v
	}
}

// per is the number of values in a word.
func (q bitFormat) per() int { return 32 / q.bits }

// panel dequantizes words of a panel whose columns have one scale each.
func (q bitFormat) panel(w width) {
	name := q.name("quantizedPanel") + w.name
	function(name, fmt.Sprintf("func(dst *float32, values *byte, words int, scale, %s *float32)", q.parameter()),
		fmt.Sprintf("%s writes %d rows of 16 elements for each word of a column; words > 0.", name, q.per()))
	dst, values, words, scale, of := pointer("dst"), pointer("values"), pointer("words"), pointer("scale"),
		pointer(q.parameter())
	read := q.reader(of, w)
	scales := each(w.perPanel(), func(i int) VecVirtual { return w.loaded(scale, i) })
	var zeros []VecVirtual
	if !q.table {
		zeros = each(w.perPanel(), func(i int) VecVirtual { return w.loaded(of, i) })
	}
	Label("words")
	for i := range w.perPanel() {
		v := w.loaded(values, i)
		for j := range q.per() {
			var zero Op
			if !q.table {
				zero = zeros[i]
			}
			VMOVUPS(read(v, j, zero, scales[i]), w.at(dst, w.perPanel()*j+i))
		}
	}
	advance(values, panelBytes)
	advance(dst, q.per()*panelBytes)
	DECQ(words)
	JNZ(LabelRef("words"))
	finish()
}

// prefetchDistance is how far before their use a row's values are read from memory, in bytes.
const prefetchDistance = 4096

// loadValues loads a word of each column of a row's product. Wide kernels also prefetch: they compute faster than the
// hardware, which stops at the end of a page, reads ahead.
func (w width) loadValues(values, valuesPanel Register, i int, to VecVirtual) {
	from := w.ofPanel(values, valuesPanel, i)
	VMOVUPS(from, to)
	if w.wide() {
		from.Disp += prefetchDistance
		PREFETCHT0(from)
	}
}

// row adds a row times some panels: the sums are chains in the order of rows, and values become floats in registers.
func (q bitFormat) row(panels int, w width) {
	name := fmt.Sprintf("%sx%d%s", q.name("quantizedRow"), 16*panels, w.name)
	signature, doc := "func(sums, a *float32, values *byte, valuesPanel, blocks, words int, scale *float32, "+
		"scalePanel int, zero *float32, zeroBlock, zeroPanel int)",
		"zeroBlock is the distance of the zero points of two blocks. "
	if q.table {
		signature, doc = "func(sums, a *float32, values *byte, valuesPanel, blocks, words int, scale *float32, "+
			"scalePanel int, table *float32)", ""
	}
	function(name, signature, fmt.Sprintf("%s adds the products of a and blocks of values, each of some words, to "+
		"sums; distances in bytes. %sblocks > 0, words > 0.", name, doc))
	sums, a, values, blocks := pointer("sums"), pointer("a"), pointer("values"), pointer("blocks")
	valuesPanel, scalePanel := pointer("valuesPanel"), pointer("scalePanel")
	scale, of := pointer("scale"), pointer(q.parameter())
	var zeroPanel, zeroBlock Register
	if !q.table {
		zeroPanel, zeroBlock = pointer("zeroPanel"), pointer("zeroBlock")
	}
	read := q.reader(of, w)
	sum := each(panels*w.perPanel(), func(i int) VecVirtual { return w.loaded(sums, i) })
	Label("block")
	left := Load(Param("words"), GP64())
	Label("word")
	v := each(len(sum), func(i int) VecVirtual {
		v := w.new()
		w.loadValues(values, valuesPanel, i, v)
		return v
	})
	for j := range q.per() {
		x := w.new()
		VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, x)
		for i := range v {
			var zero Op
			if !q.table {
				zero = w.ofPanel(of, zeroPanel, i)
			}
			VFMADD231PS(read(v[i], j, zero, w.ofPanel(scale, scalePanel, i)), x, sum[i])
		}
	}
	advance(a, 4*q.per())
	advance(values, panelBytes)
	DECQ(left)
	JNZ(LabelRef("word"))
	advance(scale, panelBytes)
	if !q.table {
		ADDQ(zeroBlock, of)
	}
	DECQ(blocks)
	JNZ(LabelRef("block"))
	for i, s := range sum {
		VMOVUPS(s, w.at(sums, i))
	}
	finish()
}

// row4Tables are the constants of row4.
type row4Tables struct {
	nibbles  Mem    // the lower halves of bytes
	exponent Mem    // 2^-24
	repeat   Mem    // a shuffle that repeats the lowest byte of each word
	highest  [4]Mem // shuffles that make a byte of each word its highest, and clear the others
}

func newRow4Tables() row4Tables {
	c := row4Tables{nibbles: words("row4Nibbles", repeated(0x0f0f0f0f)...),
		exponent: words("row4Exponent", repeated(math.Float32bits(0x1p-24))...)}
	c.repeat = byWord("row4Repeat", 0)
	for k := range c.highest {
		c.highest[k] = byWord(fmt.Sprintf("row4Highest%d", k), uint32(k)<<24|0x808080)
	}
	return c
}

// byWord is a shuffle that does the same in each word, from what it does in the first one of 128 bits.
func byWord(name string, first uint32) Mem {
	const next = 0x04040404
	w := []uint32{first, first + next, first + 2*next, first + 3*next}
	return words(name, append(w, w...)...)
}

// row4 is row of 4-bit integers with zero points of 4 bits, of which a byte is the difference: four rows of it, or the
// other four, are subtracted at once, and one shuffle sign-extends a row, as bytes are the highest ones of words.
// Scales are therefore multiplied by 2^-24, which is exact.
func row4(panels int, w width, c row4Tables) {
	name := fmt.Sprintf("quantizedRowInt4x%d%s", 16*panels, w.name)
	function(name, "func(sums, a *float32, values *byte, valuesPanel, blocks, words int, scale *float32, scalePanel "+
		"int, zeroPoint *byte, zeroBlock, zeroPanel int)",
		name+" adds the products of a and blocks of 4-bit values, each of some words, to sums; distances in bytes. "+
			"zeroBlock is the distance of the zero points of two blocks. blocks > 0, words > 0.")
	sums, a, values, blocks := pointer("sums"), pointer("a"), pointer("values"), pointer("blocks")
	valuesPanel, scalePanel, scale := pointer("valuesPanel"), pointer("scalePanel"), pointer("scale")
	zeroPoint, zeroPanel, zeroBlock := pointer("zeroPoint"), pointer("zeroPanel"), pointer("zeroBlock")
	scales, zeros := AllocLocal(panels*panelBytes), AllocLocal(panels*panelBytes)
	nibbles, exponent, repeat := w.operand(c.nibbles), w.operand(c.exponent), w.operand(c.repeat)
	sum := each(panels*w.perPanel(), func(i int) VecVirtual { return w.loaded(sums, i) })
	Label("block")
	// Scales and zero points of a block are on the stack: registers have the sums.
	for i := range sum {
		v := w.new()
		VMOVUPS(w.ofPanel(scale, scalePanel, i), v)
		VMULPS(exponent, v, v)
		VMOVUPS(v, scales.Offset(i*w.bytes))
		VPMOVZXBD(w.ofPanelBytes(zeroPoint, zeroPanel, i, w.bytes/4), v)
		VPSHUFB(repeat, v, v)
		VMOVUPS(v, zeros.Offset(i*w.bytes))
	}
	left := Load(Param("words"), GP64())
	Label("word")
	var halves [2][]VecVirtual // even and odd rows
	for i := range sum {
		even, odd := w.new(), w.new()
		w.loadValues(values, valuesPanel, i, even)
		VPSRLD(U8(4), even, odd)
		for _, v := range []VecVirtual{even, odd} {
			w.and(nibbles, v, v)
			VPSUBB(zeros.Offset(i*w.bytes), v, v)
		}
		halves[0], halves[1] = append(halves[0], even), append(halves[1], odd)
	}
	var highest VecVirtual
	for j := range 8 {
		if j%2 == 0 {
			highest = w.repeated(c.highest[j/2])
		}
		x := w.new()
		VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, x)
		for i, byWord := range halves[j%2] {
			v := w.new()
			VPSHUFB(highest, byWord, v)
			VCVTDQ2PS(v, v)
			VMULPS(scales.Offset(i*w.bytes), v, v)
			VFMADD231PS(v, x, sum[i])
		}
	}
	advance(a, 8*4)
	advance(values, panelBytes)
	DECQ(left)
	JNZ(LabelRef("word"))
	advance(scale, panelBytes)
	ADDQ(zeroBlock, zeroPoint)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	for i, s := range sum {
		VMOVUPS(s, w.at(sums, i))
	}
	finish()
}

// int8Row multiplies rows of int8 by values of some bits.
type int8Row struct {
	bits   int
	ones   Mem   // of 16 bits
	places []Mem // below 8 bits: shuffles of the rows of a word to the bytes in which they are together
}

// int8Rows are those of all bits.
func int8Rows() (rows []int8Row) {
	ones := words("int8Ones", repeated(0x00010001)...)
	for _, bits := range []int{2, 4, 8} {
		r := int8Row{bits: bits, ones: ones}
		for j := range 8 / bits {
			if bits < 8 {
				n := uint32(8 / bits)
				r.places = append(r.places, bytesOf(fmt.Sprintf("int8Places%dx%d", bits, j), uint32(j), uint32(j)+n,
					uint32(j)+2*n, uint32(j)+3*n))
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// row adds a row of int8 times some panels, for blocks of words of both.
func (r int8Row) row(panels int, w width) {
	name := fmt.Sprintf("int8Row%dx%d%s", r.bits, 16*panels, w.name)
	function(name, "func(sums *float32, a *byte, aScale, aSum *float32, values *byte, valuesPanel, blocks, words, "+
		"repeat int, scale *float32, scalePanel int, zeroPoint *byte, zeroBlock, zeroPanel int)",
		fmt.Sprintf("%s adds, for each block of rows, (sum of products - zero·aSum)·(scale·aScale) to sums; distances "+
			"in bytes. A block has at most 32 rows, and each scale is that of repeat blocks. blocks > 0 counts scales, "+
			"words > 0.", name))
	sums, a, values, blocks := pointer("sums"), pointer("a"), pointer("values"), pointer("blocks")
	aScale, aSum := pointer("aScale"), pointer("aSum")
	valuesPanel, scalePanel := pointer("valuesPanel"), pointer("scalePanel")
	scale, zeroPoint, zeroPanel := pointer("scale"), pointer("zeroPoint"), pointer("zeroPanel")
	products, word, parts := r.bytes, r.byteSums, 2
	if r.bits < 8 || w.wide() {
		products, word, parts = r.packed(w), r.packedSums, 1
	}
	if w.wide() {
		word = func(sums []VecVirtual) VecVirtual { return sums[0] }
	}
	sum := each(panels*w.perPanel(), func(i int) VecVirtual { return w.loaded(sums, i) })
	Label("scale")
	again := Load(Param("repeat"), GP64())
	Label("block")
	pairs := each(len(sum)*parts, func(int) VecVirtual { return w.zero() })
	left := Load(Param("words"), GP64())
	Label("word")
	products(a, values, valuesPanel, pairs)
	advance(a, 32/r.bits)
	advance(values, panelBytes)
	DECQ(left)
	JNZ(LabelRef("word"))
	// Once for a block of rows: (sum - zero·Σa) · (scale · scale of a), each product rounded, as the twin does.
	for i := range sum {
		by, offset, v := w.new(), w.new(), word(pairs[i*parts:])
		VCVTDQ2PS(v, v)
		VPMOVZXBD(w.ofPanelBytes(zeroPoint, zeroPanel, i, w.bytes/4), offset)
		VCVTDQ2PS(offset, offset)
		VBROADCASTSS(Mem{Base: aSum}, by)
		VMULPS(by, offset, offset)
		VSUBPS(offset, v, v)
		VBROADCASTSS(Mem{Base: aScale}, by)
		VMULPS(w.ofPanel(scale, scalePanel, i), by, by)
		VMULPS(by, v, v)
		VADDPS(v, sum[i], sum[i])
	}
	advance(aScale, 4)
	advance(aSum, 4)
	DECQ(again)
	JNZ(LabelRef("block"))
	advance(scale, panelBytes)
	zeroBlock := Load(Param("zeroBlock"), GP64())
	ADDQ(zeroBlock, zeroPoint)
	DECQ(blocks)
	JNZ(LabelRef("scale"))
	for i, s := range sum {
		VMOVUPS(s, w.at(sums, i))
	}
	finish()
}

// packed prepares a function that adds the products of a word: sums of pairs in 16 bits, which 32 values to 15 times
// int8 do not exceed, or with VPDPBUSD sums of four in 32 bits, for values of 8 bits too.
func (r int8Row) packed(w width) func(a, values, valuesPanel Register, sums []VecVirtual) {
	var mask VecVirtual
	if r.bits < 8 {
		mask = w.constant(0x01010101 * (1<<r.bits - 1))
	}
	var places []Op
	for _, place := range r.places {
		places = append(places, w.operand(place))
	}
	multiply := func(row, part, sum VecVirtual) {
		VPMADDUBSW(row, part, part)
		VPADDW(part, sum, sum)
	}
	if w.wide() {
		multiply = func(row, part, sum VecVirtual) { VPDPBUSD(row, part, sum) }
	}
	return func(a, values, valuesPanel Register, sums []VecVirtual) {
		rows := r.rows(w, a, places)
		for i, sum := range sums {
			v := w.new()
			w.loadValues(values, valuesPanel, i, v)
			for j, row := range rows {
				if j > 0 {
					VPSRLD(U8(r.bits), v, v)
				}
				part := v
				if r.bits < 8 {
					part = w.new()
					w.and(mask, v, part)
				}
				multiply(row, part, sum)
			}
		}
	}
}

// rows are the int8 values of a word of each column, as many of them as are multiplied together.
func (r int8Row) rows(w width, a Register, places []Op) []VecVirtual {
	rows := each(8/r.bits, func(int) VecVirtual { return w.new() })
	last := rows[len(rows)-1]
	switch from := (Mem{Base: a}); {
	case r.bits == 8:
		VPBROADCASTD(from, last)
	case r.bits == 4:
		VPBROADCASTQ(from, last)
	case w.wide():
		VBROADCASTI32X4(from, last)
	default:
		VBROADCASTI128(from, last)
	}
	for j, place := range places {
		VPSHUFB(place, last, rows[j])
	}
	return rows
}

// packedSums are the sums of packed.
func (r int8Row) packedSums(pairs []VecVirtual) VecVirtual {
	VPMADDWD(r.ones, pairs[0], pairs[0])
	return pairs[0]
}

// bytes adds the products of a word of bytes, widened to 16 bits as VPMADDUBSW would saturate: pairs has two sums of a
// column, of four columns each.
func (r int8Row) bytes(a, values, valuesPanel Register, pairs []VecVirtual) {
	row := YMM()
	VPBROADCASTD(Mem{Base: a}, row.AsX())
	VPMOVSXBW(row.AsX(), row)
	for i, sum := range pairs {
		v, from := YMM(), ymm.ofPanel(values, valuesPanel, i/2)
		from.Disp += i % 2 * vector / 2
		VPMOVZXBW(from, v)
		VPMADDWD(row, v, v)
		VPADDD(v, sum, sum)
	}
}

// byteSums are the sums of bytes.
func (r int8Row) byteSums(pairs []VecVirtual) VecVirtual {
	v := pairs[0]
	// VPHADDD adds within halves of 128 bits, so that its sums are interleaved: VPERMQ restores the order of columns.
	VPHADDD(pairs[1], v, v)
	VPERMQ(U8(0b11_01_10_00), v, v)
	return v
}

// bytesOf is a shuffle that repeats four bytes.
func bytesOf(name string, of ...uint32) Mem {
	word := of[0] | of[1]<<8 | of[2]<<16 | of[3]<<24
	return words(name, word, word, word, word, word, word, word, word)
}
