package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// depthwiseBytes interleaves the bytes of two taps, widens them to int16, and multiplies both with VPMADDWD: two vectors of eight sums are
// 16 channels of a position.
func depthwiseBytes(name string, extend func(...Op)) {
	function(name, "func(sums *int32, x *byte, positions, step, rest int, at *int64, pairs int, w *int16, first *int32, groups int)",
		name+" computes 16·groups channels; steps in bytes, rest from the end of a position's sums to the next; all > 0.")
	sums, x, positions := pointer("sums"), pointer("x"), pointer("positions")
	channels, weights, init, groups, pairs := GP64(), GP64(), GP64(), GP64(), GP64()
	from, off := GP64(), GP64()
	Label("position")
	MOVQ(x, channels)
	Load(Param("w"), weights)
	Load(Param("first"), init)
	Load(Param("groups"), groups)
	Label("group")
	total := each(2, func(i int) VecVirtual {
		y := YMM()
		VMOVDQU(at(init, i), y)
		return y
	})
	Load(Param("at"), from)
	Load(Param("pairs"), pairs)
	Label("pair")
	taps := each(2, func(i int) VecVirtual {
		x := XMM()
		MOVQ(Mem{Base: from, Disp: i * 8}, off)
		VMOVDQU(Mem{Base: channels, Index: off, Scale: 1}, x)
		return x
	})
	for i, mix := range []func(...Op){VPUNPCKLBW, VPUNPCKHBW} {
		both, y := XMM(), YMM()
		mix(taps[1], taps[0], both)
		extend(both, y)
		VPMADDWD(at(weights, i), y, y)
		VPADDD(y, total[i], total[i])
	}
	advance(from, 2*8)
	advance(weights, 2*vector)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	for i, t := range total {
		VMOVDQU(t, at(sums, i))
	}
	advance(sums, 2*vector)
	advance(init, 2*vector)
	advance(channels, 16)
	DECQ(groups)
	JNZ(LabelRef("group"))
	ADDQ(parameter("rest"), sums)
	ADDQ(parameter("step"), x)
	DECQ(positions)
	JNZ(LabelRef("position"))
	finish()
}

// depthwiseFloat sums two vectors of eight channels for three positions at once, to hide latencies. Products and sums are rounded like in
// plain Go.
func depthwiseFloat() {
	function("depthwiseFloatAVX2", "func(y, x *float32, positions, step int, at *int64, taps int, w, first *float32)",
		"depthwiseFloatAVX2 computes 16 channels; step in bytes; positions and taps > 0.")
	y, x, positions, step := pointer("y"), pointer("x"), pointer("positions"), pointer("step")
	first, from, weights, taps, tap := pointer("first"), GP64(), GP64(), GP64(), GP64()
	sum := func(high int) func() {
		return func() {
			sums := each(2*high, func(i int) VecVirtual {
				s := YMM()
				VMOVUPS(at(first, i%2), s)
				return s
			})
			Load(Param("at"), from)
			Load(Param("w"), weights)
			Load(Param("taps"), taps)
			label := fmt.Sprintf("taps%d", high)
			Label(label)
			MOVQ(Mem{Base: from}, tap)
			LEAQ(Mem{Base: x, Index: tap, Scale: 4}, tap)
			w := each(2, func(i int) VecVirtual {
				v := YMM()
				VMOVUPS(at(weights, i), v)
				return v
			})
			for i, s := range sums {
				input := at(tap, i%2)
				if p := i / 2; p > 0 {
					input.Index, input.Scale = step, uint8(p)
				}
				v := YMM()
				VMULPS(input, w[i%2], v)
				VADDPS(v, s, s)
			}
			advance(from, 8)
			advance(weights, 2*vector)
			DECQ(taps)
			JNZ(LabelRef(label))
			for i, s := range sums {
				VMOVUPS(s, at(y, i))
				if i%2 == 1 {
					ADDQ(step, x)
				}
			}
			advance(y, 2*high*vector)
		}
	}
	strips("three", positions, 3, sum(3))
	strips("single", positions, 1, sum(1))
	finish()
}
