package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// depthwiseBytes sums 16 channels of two positions, one in each lane, four channels per vector: it interleaves the bytes of two taps, widens
// them to int16, and multiplies both with VPMADDWD. extend widens the bytes that an instruction unpacks.
func depthwiseBytes(name string, extend func(unpack func(...Op), both, zero, y VecVirtual), table Mem) {
	function(name, "func(dst *byte, x *byte, twice, step, row int, at *int64, pairs int, w *int16, first *int32, groups int, scale, bias *float32, offset int32, lo, hi uint32)",
		name+" computes 16·groups channels of twice 2 positions, of which step and row are the distances in x and dst; all but step > 0.")
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
	unpack(both, zero, y)
	VPSRAW(U8(8), y, y)
}

// depthwiseFloat sums two vectors of eight channels for three positions at once, to hide latencies. Products and sums are rounded like in
// plain Go.
func depthwiseFloat() {
	function("depthwiseFloatAVX2", "func(y *float32, to int, x *float32, from, positions int, taps *int, count int, w, first *float32, groups int)",
		"depthwiseFloatAVX2 computes 16·groups channels; to and from in bytes; taps are pairs of offsets; positions, count and groups > 0.")
	y, to, x, from, positions := pointer("y"), pointer("to"), pointer("x"), pointer("from"), pointer("positions")
	sums, input, init, weights, groups := GP64(), GP64(), GP64(), GP64(), GP64()
	tap, count, source, weight := GP64(), GP64(), GP64(), GP64()
	several := func(high int) func() {
		return func() {
			MOVQ(y, sums)
			MOVQ(x, input)
			Load(Param("first"), init)
			Load(Param("w"), weights)
			Load(Param("groups"), groups)
			group := fmt.Sprintf("groups%d", high)
			Label(group)
			total := each(2*high, func(i int) VecVirtual {
				s := YMM()
				VMOVUPS(at(init, i%2), s)
				return s
			})
			Load(Param("taps"), tap)
			Load(Param("count"), count)
			taps := fmt.Sprintf("taps%d", high)
			Label(taps)
			MOVQ(Mem{Base: tap}, source)
			LEAQ(Mem{Base: input, Index: source, Scale: 4}, source)
			MOVQ(Mem{Base: tap, Disp: 8}, weight)
			LEAQ(Mem{Base: weights, Index: weight, Scale: 4}, weight)
			w := each(2, func(i int) VecVirtual {
				v := YMM()
				VMOVUPS(at(weight, i), v)
				return v
			})
			for i, s := range total {
				v := YMM()
				VMULPS(position(source, from, i), w[i%2], v)
				VADDPS(v, s, s)
			}
			advance(tap, 2*8)
			DECQ(count)
			JNZ(LabelRef(taps))
			for i, s := range total {
				VMOVUPS(s, position(sums, to, i))
			}
			for _, p := range []Register{sums, input, init, weights} {
				advance(p, 2*vector)
			}
			DECQ(groups)
			JNZ(LabelRef(group))
			for range high {
				ADDQ(from, x)
				ADDQ(to, y)
			}
		}
	}
	strips("three", positions, 3, several(3))
	strips("single", positions, 1, several(1))
	finish()
}

// position is vector i%2 of position i/2, of positions that are step bytes apart.
func position(p, step Register, i int) Mem {
	m := at(p, i%2)
	if i > 1 {
		m.Index, m.Scale = step, uint8(i/2)
	}
	return m
}
