package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// depthwiseBytes sums 16 channels of two positions, one in each lane, four channels per vector: it interleaves the
// bytes of two taps, widens them to int16, and multiplies both with VPMADDWD. extend widens the bytes that an
// instruction unpacks.
func depthwiseBytes(name string, extend func(unpack func(...Op), both, zero, y VecVirtual), table Mem) {
	function(name, "func(dst *byte, x *byte, twice, step, row int, at *int64, pairs int, w *int16, first *int32, "+
		"groups int, scale, bias *float32, offset int32, lo, hi uint32)",
		name+" computes 16·groups channels of twice 2 positions, of which step and row are the distances in x and dst; "+
			"all but step > 0.")
	dst, x, twice := pointer("dst"), pointer("x"), pointer("twice")
	c, offset := rounding(table)
	none := zero()
	channels, to, weights, init, groups, pairs := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	scale, bias, from, off := GP64(), GP64(), GP64(), GP64()
	step := pointer("step")
	Label("position")
	MOVQ(x, channels)
	MOVQ(dst, to)
	Load(Param("w"), weights)
	Load(Param("first"), init)
	Load(Param("scale"), scale)
	Load(Param("bias"), bias)
	Load(Param("groups"), groups)
	Label("group")
	twin := func(p Register, i int) VecVirtual {
		y := YMM()
		VBROADCASTI128(halfAt(p, i), y)
		return y
	}
	total := each(4, func(i int) VecVirtual { return twin(init, i) })
	Load(Param("at"), from)
	Load(Param("pairs"), pairs)
	Label("pair")
	taps := each(2, func(i int) VecVirtual {
		y := YMM()
		MOVQ(Mem{Base: from, Disp: i * 8}, off)
		ADDQ(channels, off)
		VMOVDQU(Mem{Base: off}, y.AsX())
		VINSERTI128(U8(1), Mem{Base: off, Index: step, Scale: 1}, y, y)
		return y
	})
	for half, mix := range []func(...Op){VPUNPCKLBW, VPUNPCKHBW} {
		both := YMM()
		mix(taps[1], taps[0], both)
		for i, unpack := range []func(...Op){VPUNPCKLBW, VPUNPCKHBW} {
			y, t := YMM(), total[2*half+i]
			extend(unpack, both, none, y)
			VPMADDWD(twin(weights, 2*half+i), y, y)
			VPADDD(y, t, t)
		}
	}
	advance(from, 2*8)
	advance(weights, 2*vector)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	for i, t := range total {
		VCVTDQ2PS(t, t)
		c.scale(t, twin(scale, i), twin(bias, i), offset)
	}
	both := c.joinLanes(total)
	VMOVDQU(both.AsX(), Mem{Base: to})
	row := pointer("row")
	VEXTRACTI128(U8(1), both, Mem{Base: to, Index: row, Scale: 1})
	for _, p := range []Register{init, scale, bias} {
		advance(p, 2*vector)
	}
	advance(channels, 16)
	advance(to, 16)
	DECQ(groups)
	JNZ(LabelRef("group"))
	LEAQ(Mem{Base: x, Index: step, Scale: 2}, x)
	row = pointer("row")
	LEAQ(Mem{Base: dst, Index: row, Scale: 2}, dst)
	DECQ(twice)
	JNZ(LabelRef("position"))
	finish()
}

func unsignedBytes(unpack func(...Op), both, zero, y VecVirtual) { unpack(zero, both, y) }

func signedBytes(unpack func(...Op), both, zero, y VecVirtual) {
	// The byte becomes the upper half, from which the shift extends its sign.
	unpack(both, zero, y)
	VPSRAW(U8(8), y, y)
}
