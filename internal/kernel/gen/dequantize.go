package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// flipDoc explains the parameter that spares a second set of functions: int8(b) is
// int(b^0x80) - 0x80, and uint8 the same with 0.
const flipDoc = " flip is 0x80 for int8 and 0 for uint8; n%8 == 0."

// widen loads eight quantized values after q as integers.
func widen(q Register, flip VecVirtual) VecVirtual {
	v := YMM()
	VPMOVZXBD(Mem{Base: q}, v)
	VPXOR(flip, v, v)
	VPSUBD(flip, v, v)
	return v
}

func dequantize() {
	function("dequantizeAVX2", "func(dst *float32, q *byte, n int, flip uint32, scale float32, zero int32)",
		"dequantizeAVX2:"+flipDoc)
	dst, q, n := pointer("dst"), pointer("q"), pointer("n")
	flip, scale, offset := spread("flip"), spread("scale"), spread("zero")
	strips("codes", n, 8, func() {
		v := widen(q, flip)
		VPSUBD(offset, v, v)
		VCVTDQ2PS(v, v)
		VMULPS(scale, v, v)
		VMOVUPS(v, at(dst, 0))
		advance(q, 8)
		advance(dst, vector)
	})
	finish()
}

func dequantizeCols(name string, zeros bool) {
	signature := "func(dst *float32, q *byte, n int, flip uint32, scale *float32)"
	if zeros {
		signature = "func(dst *float32, q *byte, n int, flip uint32, scale *float32, zero *int32)"
	}
	function(name, signature, name+" processes one row;"+flipDoc)
	dst, q, n, scale := pointer("dst"), pointer("q"), pointer("n"), pointer("scale")
	columns := []Register{dst, scale}
	var offset GPVirtual
	if zeros {
		offset = pointer("zero")
		columns = append(columns, offset)
	}
	flip := spread("flip")
	strips("codes", n, 8, func() {
		v := widen(q, flip)
		if zeros {
			VPSUBD(at(offset, 0), v, v)
		}
		VCVTDQ2PS(v, v)
		VMULPS(at(scale, 0), v, v)
		VMOVUPS(v, at(dst, 0))
		advance(q, 8)
		advanceAll(columns, vector)
	})
	finish()
}
