package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// maxBytes computes the maxima of 32 channels of one position after the other.
func maxBytes(name string, greater func(...Op)) {
	function(name, "func(dst *byte, to int, x *byte, step, positions int, at *int64, taps, n int)",
		name+" computes n channels of positions that are to and step bytes apart; n%32 == 0; n, positions, taps > 0.")
	dst, x, positions := pointer("dst"), pointer("x"), pointer("positions")
	at, taps, channel, from := GP64(), GP64(), GP64(), GP64()
	Label("position")
	XORQ(channel, channel)
	Label("channels")
	Load(Param("at"), at)
	Load(Param("taps"), taps)
	largest := YMM()
	start := GP64()
	LEAQ(Mem{Base: x, Index: channel, Scale: 1}, start)
	MOVQ(Mem{Base: at}, from)
	VMOVDQU(Mem{Base: start, Index: from, Scale: 1}, largest)
	JMP(LabelRef("next"))
	Label("tap")
	MOVQ(Mem{Base: at}, from)
	greater(Mem{Base: start, Index: from, Scale: 1}, largest, largest)
	Label("next")
	advance(at, 8)
	DECQ(taps)
	JNZ(LabelRef("tap"))
	VMOVDQU(largest, Mem{Base: dst, Index: channel, Scale: 1})
	advance(channel, vector)
	CMPQ(channel, parameter("n"))
	JLT(LabelRef("channels"))
	ADDQ(parameter("step"), x)
	ADDQ(parameter("to"), dst)
	DECQ(positions)
	JNZ(LabelRef("position"))
	finish()
}
