package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// requantize rounds after each step, like dequantizeInt32, and then like quantize.
func requantize(packOrder Mem) {
	function("requantizeAVX2", "func(dst *byte, sums *int32, n int, scale, bias *float32, offset, lo, hi int32)",
		"requantizeAVX2 quantizes one row; it expects the zero point minus the bits of roundShift as offset; n%8 == 0.")
	dst, sums, n, scale, bias := pointer("dst"), pointer("sums"), pointer("n"), pointer("scale"), pointer("bias")
	offset, c := spread("offset"), newCoder(packOrder)
	columns := []Register{sums, scale, bias}
	integers := func(i int) VecVirtual {
		v := YMM()
		VCVTDQ2PS(at(sums, i), v)
		VMULPS(at(scale, i), v, v)
		VADDPS(at(bias, i), v, v)
		c.round(v)
		VPADDD(offset, v, v)
		return v
	}
	strips("wide", n, 32, func() {
		v := each(4, integers)
		for _, p := range columns {
			advance(p, 4*vector)
		}
		c.pack(v, dst)
	})
	strips("narrow", n, 8, func() {
		v := integers(0)
		for _, p := range columns {
			advance(p, vector)
		}
		c.pack8(v, dst)
	})
	finish()
}
