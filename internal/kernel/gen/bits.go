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
	even, odd := bytesOf("int8Even", 0, 2, 4, 6), bytesOf("int8Odd", 1, 3, 5, 7)
	int8Row(1, even, odd)
	int8Row(2, even, odd)
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

// int8Row adds a row of int8 times some panels of 4-bit values, for blocks of words of both: sums of pairs of products in 16 bits, which
// four words of values to 15 times int8 do not exceed.
func int8Row(panels int, evenBytes, oddBytes Mem) {
	name := fmt.Sprintf("int8Row4x%dAVX2", 16*panels)
	function(name, "func(sums *float32, a *byte, aScale, aSum *float32, values *byte, valuesPanel, blocks, words, repeat int, scale *float32, scalePanel int, zeroPoint *byte, zeroBlock, zeroPanel int)",
		name+" adds, for each block of rows, (sum of products - zero·aSum)·(scale·aScale) to sums; distances in bytes. A block has 1 to 4 words, and each scale is that of repeat blocks. blocks > 0 counts scales.")
	sums, a, values, blocks := pointer("sums"), pointer("a"), pointer("values"), pointer("blocks")
	aScale, aSum := pointer("aScale"), pointer("aSum")
	valuesPanel, scalePanel := pointer("valuesPanel"), pointer("scalePanel")
	scale, zeroPoint, zeroPanel := pointer("scale"), pointer("zeroPoint"), pointer("zeroPanel")
	mask, ones := constant(0x0f0f0f0f), constant(0x00010001)
	sum := each(2*panels, func(i int) VecVirtual { return loaded(sums, i) })
	Label("scale")
	again := Load(Param("repeat"), GP64())
	Label("block")
	pairs := each(2*panels, func(int) VecVirtual { return zero() })
	left := Load(Param("words"), GP64())
	Label("word")
	even, odd := YMM(), YMM()
	VPBROADCASTQ(Mem{Base: a}, odd)
	VPSHUFB(evenBytes, odd, even)
	VPSHUFB(oddBytes, odd, odd)
	for i := range pairs {
		low, high := YMM(), YMM()
		VMOVDQU(ofPanel(values, valuesPanel, i), high)
		VPAND(mask, high, low)
		VPSRLD(U8(4), high, high)
		VPAND(mask, high, high)
		VPMADDUBSW(even, low, low)
		VPMADDUBSW(odd, high, high)
		VPADDW(low, pairs[i], pairs[i])
		VPADDW(high, pairs[i], pairs[i])
	}
	advance(a, 8)
	advance(values, panelBytes)
	DECQ(left)
	JNZ(LabelRef("word"))
	for i, v := range pairs {
		by, offset := YMM(), YMM()
		VPMADDWD(ones, v, v)
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

// bytesOf is a shuffle that repeats four bytes.
func bytesOf(name string, of ...uint32) Mem {
	word := of[0] | of[1]<<8 | of[2]<<16 | of[3]<<24
	return words(name, word, word, word, word, word, word, word, word)
}
