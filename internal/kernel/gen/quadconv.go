package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// quadFamily is the windows over images of bytes: convolutions with VPDPBUSD, which are requantized in registers, and
// maxima.
func quadFamily() {
	order := words("quadOrder", 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
	for _, rows := range []int{8, 7, 4, 1} {
		quadConv(rows, 32, order)
		quadConv(rows, 16, order)
	}
	quadRows(order)
	quadWindow()
	maxBytes("maxUnsignedAVX2", VPMAXUB)
	maxBytes("maxSignedAVX2", VPMAXSB)
}

// quadParameters are those of the requantization.
const quadParameters = "scale, bias *float32, zero, lo, hi, flip uint32"

// A quadCoder holds the constants of the requantization: zero is repeated in 16 bits, the others in 8.
type quadCoder struct{ zero, lo, hi, flip VecVirtual }

func newQuadCoder() quadCoder {
	each := func(name string) VecVirtual {
		z := ZMM()
		VBROADCASTSS(parameter(name), z)
		return z
	}
	return quadCoder{each("zero"), each("lo"), each("hi"), each("flip")}
}

// integer scales and rounds sums.
func (c quadCoder) integer(v VecVirtual, scale, bias Op) {
	VCVTDQ2PS(v, v)
	VMULPS(scale, v, v)
	VADDPS(bias, v, v)
	VCVTPS2DQ(v, v)
}

// join saturates four vectors to bytes, in the order of each 16 bytes of them.
func (c quadCoder) join(v []VecVirtual) VecVirtual {
	words := each(2, func(i int) VecVirtual {
		w := ZMM()
		// The packs are within quarters of 128 bits, so bytes are in an order that a permutation at the end, or that of
		// the channels (QuadLane), restores.
		VPACKSSDW(v[2*i+1], v[2*i], w)
		VPADDSW(c.zero, w, w)
		return w
	})
	VPACKUSWB(words[1], words[0], words[0])
	return words[0]
}

func (c quadCoder) saturate(y VecVirtual) {
	VPMINUB(c.hi, y, y)
	VPMAXUB(c.lo, y, y)
	VPXORD(c.flip, y, y)
}

// quadConv multiplies rows of bytes by one or two panels of weights, run by run of contiguous bytes.
func quadConv(rows, cols int, order Mem) {
	name := fmt.Sprintf("quadConv%dx%dAVX512", rows, cols)
	function(name, "func(strips int, a *byte, aRow int, runs *int64, count int, b *byte, bPanel int, first *int32, "+
		"dst *byte, to int, mask uint32, "+quadParameters+")",
		fmt.Sprintf("%s stores first+a·b as bytes, for strips of %d rows, of the columns of the mask; strides in bytes; "+
			"runs are pairs of an offset and quads > 0; strips, count > 0.", name, rows))
	t := tile{rows, cols, zmm, bytes}
	strip, top, dst, count, runs, quads := pointer("strips"), pointer("a"), pointer("dst"), GP64(), GP64(), GP64()
	a, b := t.operand("a", "aRow", rows), t.operand("b", "bPanel", cols/16)
	mask, multiply, c := K(), t.numbers.multiplier(), newQuadCoder()
	KMOVD(Load(Param("mask"), GP32()), mask)
	Label("strip")
	first := pointer("first")
	sums := make([][]VecVirtual, rows)
	for r := range sums {
		sums[r] = each(cols/16, func(i int) VecVirtual { return zmm.loaded(first, i) })
	}
	Load(Param("runs"), runs)
	Load(Param("count"), count)
	Load(Param("b"), b.base[0])
	Label("run")
	from := GP64()
	MOVQ(Mem{Base: runs}, from)
	ADDQ(top, from)
	a.from(from)
	MOVQ(Mem{Base: runs, Disp: 8}, quads)
	step := func() {
		t.step(a, b, sums, multiply)
		for _, p := range a.base {
			advance(p, 4)
		}
		advance(b.base[0], panelBytes)
	}
	strips("two", quads, 2, func() {
		step()
		step()
	})
	strips("one", quads, 1, step)
	advance(runs, 2*8)
	DECQ(count)
	JNZ(LabelRef("run"))
	to := strided{[]GPVirtual{dst}, pointer("to")}
	all := slices.Concat(sums...)
	scale, bias := pointer("scale"), pointer("bias")
	for i, v := range all {
		c.integer(v, zmm.at(scale, i%(cols/16)), zmm.at(bias, i%(cols/16)))
	}
	places := ZMM()
	VMOVDQU32(order, places)
	for i := 0; i < len(all); i += 4 {
		v := all[i:min(i+4, len(all))]
		// Fewer than four vectors are repeated; their copies are not stored.
		both := c.join([]VecVirtual{v[0], v[1%len(v)], v[2%len(v)], v[3%len(v)]})
		VPERMD(both, places, both)
		c.saturate(both)
		storeRows(both, len(v)*16/cols, cols, to, mask)
	}
	for range rows {
		ADDQ(a.stride, top)
	}
	DECQ(strip)
	JNZ(LabelRef("strip"))
	finish()
}

// storeRows stores rows of 16 or 32 bytes and advances by them.
func storeRows(y VecVirtual, rows, cols int, to strided, mask Register) {
	for r := range rows {
		part := y.AsX()
		switch {
		case cols == 32 && r == 0:
			part = y.AsY()
		case cols == 32:
			part = YMM()
			VEXTRACTI64X4(U8(r), y, part)
		case r > 0:
			part = XMM()
			VEXTRACTI32X4(U8(r), y, part)
		}
		VMOVDQU8(part, mask, Mem{Base: to.base[0]})
		ADDQ(to.stride, to.base[0])
	}
}

// quadRows requantizes sums that are in memory: two rows at once, of which the last may not be stored.
func quadRows(order Mem) {
	function("quadRowsAVX512", "func(rows int, sums *int32, dst *byte, to int, mask uint32, "+quadParameters+")",
		"quadRowsAVX512 stores rows of 32 sums as bytes, of the columns of the mask; it reads an even number of rows; "+
			"rows > 0.")
	rows, sums, dst, to, mask, c := pointer("rows"), pointer("sums"), pointer("dst"), pointer("to"), K(), newQuadCoder()
	KMOVD(Load(Param("mask"), GP32()), mask)
	parameters := func(name string) []VecVirtual {
		from := pointer(name)
		return each(2, func(i int) VecVirtual { return zmm.loaded(from, i) })
	}
	scale, bias, places := parameters("scale"), parameters("bias"), ZMM()
	VMOVDQU32(order, places)
	Label("pair")
	v := each(4, func(i int) VecVirtual { return zmm.loaded(sums, i) })
	for i := range v {
		c.integer(v[i], scale[i%2], bias[i%2])
	}
	both, second := c.join(v), YMM()
	VPERMD(both, places, both)
	c.saturate(both)
	VMOVDQU8(both.AsY(), mask, Mem{Base: dst})
	DECQ(rows)
	JZ(LabelRef("end"))
	ADDQ(to, dst)
	VEXTRACTI64X4(U8(1), both, second)
	VMOVDQU8(second, mask, Mem{Base: dst})
	ADDQ(to, dst)
	advance(sums, 4*panelBytes)
	DECQ(rows)
	JNZ(LabelRef("pair"))
	Label("end")
	finish()
}

// quadWindow interleaves the bytes of four taps of 64 channels, so that VPDPBUSD multiplies them by the weights of a
// channel. Loads with a mask of bytes would take an instruction more.
func quadWindow() {
	function("quadWindowAVX512", "func(dst *byte, to int, x *byte, step, positions int, at *int64, quads int, w "+
		"*byte, first *int32, blocks int, mask uint64, "+quadParameters+")",
		"quadWindowAVX512 computes blocks of 64 channels, of the last one those of the mask, of positions that are to "+
			"and step bytes apart; quads, positions, blocks > 0.")
	dst, x, positions, c := pointer("dst"), pointer("x"), pointer("positions"), newQuadCoder()
	channels, y, weights, init, blocks := GP64(), GP64(), GP64(), GP64(), GP64()
	scale, bias, at, quads, off, lanes := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	mask := K()
	Label("position")
	MOVQ(x, channels)
	MOVQ(dst, y)
	Load(Param("w"), weights)
	Load(Param("first"), init)
	Load(Param("scale"), scale)
	Load(Param("bias"), bias)
	Load(Param("blocks"), blocks)
	Label("block")
	MOVQ(I32(-1), lanes)
	CMPQ(blocks, U8(1))
	CMOVQEQ(parameter("mask"), lanes)
	KMOVQ(lanes, mask)
	total := each(4, func(i int) VecVirtual { return zmm.loaded(init, i) })
	Load(Param("at"), at)
	Load(Param("quads"), quads)
	Label("quad")
	taps := each(4, func(i int) VecVirtual {
		z := ZMM()
		MOVQ(Mem{Base: at, Disp: i * 8}, off)
		VMOVDQU64(Mem{Base: channels, Index: off, Scale: 1}, z)
		return z
	})
	for half, mix := range []func(...Op){VPUNPCKLBW, VPUNPCKHBW} {
		left, right := ZMM(), ZMM()
		mix(taps[1], taps[0], left)
		mix(taps[3], taps[2], right)
		for i, mix := range []func(...Op){VPUNPCKLWD, VPUNPCKHWD} {
			z := ZMM()
			mix(right, left, z)
			VPDPBUSD(zmm.at(weights, 2*half+i), z, total[2*half+i])
		}
	}
	advance(at, 4*8)
	advance(weights, 4*panelBytes)
	DECQ(quads)
	JNZ(LabelRef("quad"))
	for i, v := range total {
		c.integer(v, zmm.at(scale, i), zmm.at(bias, i))
	}
	joined := c.join(total)
	c.saturate(joined)
	VMOVDQU8(joined, mask, Mem{Base: y})
	for _, p := range []Register{init, scale, bias} {
		advance(p, 4*panelBytes)
	}
	advance(channels, panelBytes)
	advance(y, panelBytes)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	ADDQ(parameter("step"), x)
	ADDQ(parameter("to"), dst)
	DECQ(positions)
	JNZ(LabelRef("position"))
	finish()
}
