package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// bitsFamily dequantizes and multiplies weights of a few bits: panels of 16 columns, in which a word of 32 bits is consecutive rows of a column.
func bitsFamily() {
	for _, v := range []quantized{{2, false}, {4, false}, {8, false}, {4, true}, {8, true}} {
		v.panel()
		v.row(1)
		if v != (quantized{8, true}) { // two panels would need more registers
			v.row(2)
		}
	}
	c := newRow4Tables()
	row4(1, c)
	row4(2, c)
	ones := words("int8Ones", repeated(0x00010001)...)
	for _, bits := range []int{2, 4, 8} {
		r := newInt8Row(bits, ones)
		r.row(1)
		r.row(2)
	}
}

// quantized are values of some bits: integers, or indices into a table.
type quantized struct {
	bits  int
	table bool
}

func (q quantized) name(of string) string {
	if q.table {
		of += "Table"
	}
	return fmt.Sprintf("%s%d", of, q.bits)
}

// parameter is that of a function: zero points, or a table.
func (q quantized) parameter() string {
	if q.table {
		return "table"
	}
	return "zero"
}

// A reader leaves value j of the words, which it shifts from value to value, and multiplies it by a scale. zero is that of integers.
type reader func(words VecVirtual, j int, zero, scale Op) VecVirtual

// reader prepares a function.
func (q quantized) reader(table Register) reader {
	mask := constant(1<<q.bits - 1)
	var low, high VecVirtual
	if q.table && q.bits == 4 {
		low, high = YMM(), YMM()
		VMOVUPS(at(table, 0), low)
		VMOVUPS(at(table, 1), high)
	}
	return func(words VecVirtual, j int, zero, scale Op) VecVirtual {
		if j > 0 {
			VPSRLD(U8(q.bits), words, words)
		}
		v := YMM()
		switch {
		case !q.table:
			VPAND(mask, words, v)
			VCVTDQ2PS(v, v)
			VSUBPS(zero, v, v)
		case q.bits == 4:
			half := YMM()
			VPERMPS(low, words, v)
			VPERMPS(high, words, half)
			upper := YMM()
			VPSLLD(U8(28), words, upper)
			VBLENDVPS(upper, half, v, v)
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
func (q quantized) per() int { return 32 / q.bits }

// panel dequantizes words of a panel whose columns have one scale each.
func (q quantized) panel() {
	name := q.name("quantizedPanel") + "AVX2"
	function(name, fmt.Sprintf("func(dst *float32, values *byte, words int, scale, %s *float32)", q.parameter()),
		fmt.Sprintf("%s writes %d rows of 16 elements for each word of a column; words > 0.", name, q.per()))
	dst, values, words, scale, of := pointer("dst"), pointer("values"), pointer("words"), pointer("scale"), pointer(q.parameter())
	read := q.reader(of)
	scales := each(2, func(i int) VecVirtual { return loaded(scale, i) })
	var zeros []VecVirtual
	if !q.table {
		zeros = each(2, func(i int) VecVirtual { return loaded(of, i) })
	}
	Label("words")
	for i := range 2 {
		v := loaded(values, i)
		for j := range q.per() {
			var zero Op
			if !q.table {
				zero = zeros[i]
			}
			VMOVUPS(read(v, j, zero, scales[i]), at(dst, 2*j+i))
		}
	}
	advance(values, panelBytes)
	advance(dst, q.per()*panelBytes)
	DECQ(words)
	JNZ(LabelRef("words"))
	finish()
}

func loaded(from Register, i int) VecVirtual {
	v := YMM()
	VMOVUPS(at(from, i), v)
	return v
}

// row adds a row times some panels: the sums are chains in the order of rows, and values become floats in registers.
func (q quantized) row(panels int) {
	name := fmt.Sprintf("%sx%dAVX2", q.name("quantizedRow"), 16*panels)
	signature, doc := "func(sums, a *float32, values *byte, valuesPanel, blocks, words int, scale *float32, scalePanel int, zero *float32, zeroBlock, zeroPanel int)",
		"zeroBlock is the distance of the zero points of two blocks. "
	if q.table {
		signature, doc = "func(sums, a *float32, values *byte, valuesPanel, blocks, words int, scale *float32, scalePanel int, table *float32)", ""
	}
	function(name, signature, fmt.Sprintf("%s adds the products of a and blocks of values, each of some words, to sums; distances in bytes. %sblocks > 0, words > 0.", name, doc))
	sums, a, values, blocks := pointer("sums"), pointer("a"), pointer("values"), pointer("blocks")
	valuesPanel, scalePanel := pointer("valuesPanel"), pointer("scalePanel")
	scale, of := pointer("scale"), pointer(q.parameter())
	var zeroPanel, zeroBlock Register
	if !q.table {
		zeroPanel, zeroBlock = pointer("zeroPanel"), pointer("zeroBlock")
	}
	read := q.reader(of)
	sum := each(2*panels, func(i int) VecVirtual { return loaded(sums, i) })
	Label("block")
	left := Load(Param("words"), GP64())
	Label("word")
	v := each(2*panels, func(i int) VecVirtual {
		w := YMM()
		VMOVUPS(ofPanel(values, valuesPanel, i), w)
		return w
	})
	for j := range q.per() {
		x := YMM()
		VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, x)
		for i := range v {
			var zero Op
			if !q.table {
				zero = ofPanel(of, zeroPanel, i)
			}
			VFMADD231PS(read(v[i], j, zero, ofPanel(scale, scalePanel, i)), x, sum[i])
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
		VMOVUPS(s, at(sums, i))
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
	c := row4Tables{nibbles: words("row4Nibbles", repeated(0x0f0f0f0f)...), exponent: words("row4Exponent", repeated(math.Float32bits(0x1p-24))...)}
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

// row4 is row of 4-bit integers with zero points of 4 bits, of which a byte is the difference: four rows of it, or the other four, are subtracted at
// once, and one shuffle sign-extends a row, as bytes are the highest ones of words. Scales are therefore multiplied by 2^-24, which is exact.
func row4(panels int, c row4Tables) {
	name := fmt.Sprintf("quantizedRowInt4x%dAVX2", 16*panels)
	function(name, "func(sums, a *float32, values *byte, valuesPanel, blocks, words int, scale *float32, scalePanel int, zeroPoint *byte, zeroBlock, zeroPanel int)",
		name+" adds the products of a and blocks of 4-bit values, each of some words, to sums; distances in bytes. zeroBlock is the distance of the zero points of two blocks. blocks > 0, words > 0.")
	sums, a, values, blocks := pointer("sums"), pointer("a"), pointer("values"), pointer("blocks")
	valuesPanel, scalePanel, scale := pointer("valuesPanel"), pointer("scalePanel"), pointer("scale")
	zeroPoint, zeroPanel, zeroBlock := pointer("zeroPoint"), pointer("zeroPanel"), pointer("zeroBlock")
	scales, zeros := AllocLocal(2*panels*vector), AllocLocal(2*panels*vector)
	sum := each(2*panels, func(i int) VecVirtual { return loaded(sums, i) })
	Label("block")
	for i := range sum {
		v := YMM()
		VMOVUPS(ofPanel(scale, scalePanel, i), v)
		VMULPS(c.exponent, v, v)
		VMOVUPS(v, scales.Offset(i*vector))
		VPMOVZXBD(ofPanelBytes(zeroPoint, zeroPanel, i, 8), v)
		VPSHUFB(c.repeat, v, v)
		VMOVDQU(v, zeros.Offset(i*vector))
	}
	left := Load(Param("words"), GP64())
	Label("word")
	var halves [2][]VecVirtual // even and odd rows
	for i := range sum {
		even, odd := YMM(), YMM()
		VMOVDQU(ofPanel(values, valuesPanel, i), even)
		VPSRLD(U8(4), even, odd)
		for _, v := range []VecVirtual{even, odd} {
			VPAND(c.nibbles, v, v)
			VPSUBB(zeros.Offset(i*vector), v, v)
		}
		halves[0], halves[1] = append(halves[0], even), append(halves[1], odd)
	}
	var highest VecVirtual
	for j := range 8 {
		if j%2 == 0 {
			highest = YMM()
			VMOVDQU(c.highest[j/2], highest)
		}
		x := YMM()
		VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, x)
		for i, byWord := range halves[j%2] {
			v := YMM()
			VPSHUFB(highest, byWord, v)
			VCVTDQ2PS(v, v)
			VMULPS(scales.Offset(i*vector), v, v)
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
		VMOVUPS(s, at(sums, i))
	}
	finish()
}

// ofPanel is vector i of panels that are a distance apart.
func ofPanel(base, distance Register, i int) Mem { return ofPanelBytes(base, distance, i, vector) }

// ofPanelBytes is ofPanel of vectors of a size in bytes.
func ofPanelBytes(base, distance Register, i, size int) Mem {
	m := Mem{Base: base, Disp: i % 2 * size}
	if i >= 2 {
		m.Index, m.Scale = distance, 1
	}
	return m
}

// int8Row multiplies rows of int8 by values of some bits.
type int8Row struct {
	bits   int
	ones   Mem   // of 16 bits
	places []Mem // below 8 bits: shuffles of the rows of a word to the bytes in which they are together
}

func newInt8Row(bits int, ones Mem) int8Row {
	r := int8Row{bits: bits, ones: ones}
	for j := range 8 / bits {
		if bits < 8 {
			n := uint32(8 / bits)
			r.places = append(r.places, bytesOf(fmt.Sprintf("int8Places%dx%d", bits, j), uint32(j), uint32(j)+n, uint32(j)+2*n, uint32(j)+3*n))
		}
	}
	return r
}

// row adds a row of int8 times some panels, for blocks of words of both.
func (r int8Row) row(panels int) {
	name := fmt.Sprintf("int8Row%dx%dAVX2", r.bits, 16*panels)
	function(name, "func(sums *float32, a *byte, aScale, aSum *float32, values *byte, valuesPanel, blocks, words, repeat int, scale *float32, scalePanel int, zeroPoint *byte, zeroBlock, zeroPanel int)",
		fmt.Sprintf("%s adds, for each block of rows, (sum of products - zero·aSum)·(scale·aScale) to sums; distances in bytes. A block has at most 32 rows, and each scale is that of repeat blocks. blocks > 0 counts scales, words > 0.", name))
	sums, a, values, blocks := pointer("sums"), pointer("a"), pointer("values"), pointer("blocks")
	aScale, aSum := pointer("aScale"), pointer("aSum")
	valuesPanel, scalePanel := pointer("valuesPanel"), pointer("scalePanel")
	scale, zeroPoint, zeroPanel := pointer("scale"), pointer("zeroPoint"), pointer("zeroPanel")
	var mask VecVirtual
	products, word, parts := r.bytes, r.byteSums, 2
	if r.bits < 8 {
		mask = constant(0x01010101 * (1<<r.bits - 1))
		products, word, parts = func(a, values, valuesPanel Register, pairs []VecVirtual) {
			r.packed(mask, a, values, valuesPanel, pairs)
		}, r.packedSums, 1
	}
	sum := each(2*panels, func(i int) VecVirtual { return loaded(sums, i) })
	Label("scale")
	again := Load(Param("repeat"), GP64())
	Label("block")
	pairs := each(2*panels*parts, func(int) VecVirtual { return zero() })
	left := Load(Param("words"), GP64())
	Label("word")
	products(a, values, valuesPanel, pairs)
	advance(a, 32/r.bits)
	advance(values, panelBytes)
	DECQ(left)
	JNZ(LabelRef("word"))
	for i := range sum {
		by, offset, v := YMM(), YMM(), word(pairs[i*parts:])
		VCVTDQ2PS(v, v)
		VPMOVZXBD(ofPanelBytes(zeroPoint, zeroPanel, i, 8), offset)
		VCVTDQ2PS(offset, offset)
		VBROADCASTSS(Mem{Base: aSum}, by)
		VMULPS(by, offset, offset)
		VSUBPS(offset, v, v)
		VBROADCASTSS(Mem{Base: aScale}, by)
		VMULPS(ofPanel(scale, scalePanel, i), by, by)
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
		VMOVUPS(s, at(sums, i))
	}
	finish()
}

// packed adds the products of a word of values below 8 bits: sums of pairs in 16 bits, which 32 values to 15 times int8 do not exceed.
func (r int8Row) packed(mask VecVirtual, a, values, valuesPanel Register, pairs []VecVirtual) {
	rows := each(len(r.places), func(int) VecVirtual { return YMM() })
	last := rows[len(rows)-1]
	if r.bits == 4 {
		VPBROADCASTQ(Mem{Base: a}, last)
	} else {
		VBROADCASTI128(Mem{Base: a}, last)
	}
	for j, place := range r.places {
		VPSHUFB(place, last, rows[j])
	}
	for i := range pairs {
		v := YMM()
		VMOVDQU(ofPanel(values, valuesPanel, i), v)
		for j, row := range rows {
			part := YMM()
			if j > 0 {
				VPSRLD(U8(r.bits), v, v)
			}
			VPAND(mask, v, part)
			VPMADDUBSW(row, part, part)
			VPADDW(part, pairs[i], pairs[i])
		}
	}
}

// packedSums are the sums of packed.
func (r int8Row) packedSums(pairs []VecVirtual) VecVirtual {
	VPMADDWD(r.ones, pairs[0], pairs[0])
	return pairs[0]
}

// bytes adds the products of a word of bytes, widened to 16 bits as VPMADDUBSW would saturate: pairs has two sums of a column, of four columns
// each.
func (r int8Row) bytes(a, values, valuesPanel Register, pairs []VecVirtual) {
	row := YMM()
	VPBROADCASTD(Mem{Base: a}, row.AsX())
	VPMOVSXBW(row.AsX(), row)
	for i, sum := range pairs {
		v, from := YMM(), ofPanel(values, valuesPanel, i/2)
		from.Disp += i % 2 * vector / 2
		VPMOVZXBW(from, v)
		VPMADDWD(row, v, v)
		VPADDD(v, sum, sum)
	}
}

// byteSums are the sums of bytes.
func (r int8Row) byteSums(pairs []VecVirtual) VecVirtual {
	v := pairs[0]
	VPHADDD(pairs[1], v, v)
	VPERMQ(U8(0b11_01_10_00), v, v)
	return v
}

// bytesOf is a shuffle that repeats four bytes.
func bytesOf(name string, of ...uint32) Mem {
	word := of[0] | of[1]<<8 | of[2]<<16 | of[3]<<24
	return words(name, word, word, word, word, word, word, word, word)
}
