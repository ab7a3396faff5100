package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Scales of blocks: none, entries of a table at indices, or floats.
const (
	noScales = iota
	tableScales
	floatScales
)

// lookups decodes indices of 4 and 8 bits.
func lookups() {
	entries4 := entries4(words("lookupShifts", 0, 4, 8, 12, 16, 20, 24, 28))
	for scales, name := range []string{noScales: "", tableScales: "Scaled", floatScales: "FloatScaled"} {
		lookup("lookup4"+name+"AVX2", scales, entries4)
		lookup("lookup8"+name+"AVX2", scales, entries8)
	}
}

// A loader prepares a function and returns what loads eight entries of a table, those at the indices from element e on.
type loader func(table, indices Register) func(e Register) VecVirtual

// entries4 loads entries of a table of 16.
func entries4(shifts Mem) loader {
	return func(table, indices Register) func(e Register) VecVirtual {
		shift := YMM()
		VMOVDQU(shifts, shift)
		return func(e Register) VecVirtual {
			v, from := YMM(), GP64()
			MOVQ(e, from)
			SHRQ(U8(1), from)
			VBROADCASTSS(Mem{Base: indices, Index: from, Scale: 1}, v)
			VPSRLVD(shift, v, v)
			return lookup16(table, v)
		}
	}
}

// lookup16 are the entries of a table at indices of 4 bits, whose highest one selects a half of the table. Higher bits
// are ignored.
func lookup16(table Register, index VecVirtual) VecVirtual {
	low, high, half := YMM(), YMM(), YMM()
	VPERMPS(at(table, 0), index, low)
	VPERMPS(at(table, 1), index, high)
	VPSLLD(U8(28), index, half)
	VBLENDVPS(half, high, low, low)
	return low
}

// entries8 loads entries of a table of 256.
func entries8(table, indices Register) func(e Register) VecVirtual {
	return func(e Register) VecVirtual {
		v, all, to := YMM(), YMM(), YMM()
		VPMOVZXBD(Mem{Base: indices, Index: e, Scale: 1}, v)
		VPCMPEQD(all, all, all)
		VGATHERDPS(all, Mem{Base: table, Index: v, Scale: 4}, to)
		return to
	}
}

// lookup decodes rows of elements from element first on. A vector has one scale, as blocks are powers of two of at
// least eight elements.
func lookup(name string, kind int, entries loader) {
	signature := "func(dst *float32, dstRow int, indices *byte, table *float32, first, stride, rows, cols int"
	switch kind {
	case tableScales:
		signature += ", shift int, scales *float32, blocks *byte"
	case floatScales:
		signature += ", shift int, scales *float32"
	}
	function(name, signature+")", name+" has rows > 0, cols%8 == 0 and cols > 0; dstRow counts bytes.")
	dst, dstRow, indices, table := pointer("dst"), pointer("dstRow"), pointer("indices"), pointer("table")
	first, stride, rows, cols := pointer("first"), pointer("stride"), pointer("rows"), pointer("cols")
	scale := func(Register, VecVirtual) {}
	if kind != noScales {
		scale = scaling(kind)
	}
	load := entries(table, indices)
	Label("row")
	e, to, left := GP64(), GP64(), GP64()
	MOVQ(first, e)
	MOVQ(dst, to)
	MOVQ(cols, left)
	Label("vector")
	v := load(e)
	scale(e, v)
	VMOVUPS(v, at(to, 0))
	advance(to, vector)
	advance(e, 8)
	SUBQ(U32(8), left)
	JNZ(LabelRef("vector"))
	ADDQ(stride, first)
	ADDQ(dstRow, dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	finish()
}

// scaling multiplies the elements from e on by the scale of their block.
func scaling(kind int) func(e Register, v VecVirtual) {
	scales := pointer("scales")
	Load(Param("shift"), RCX)
	var blocks Register
	if kind == tableScales {
		blocks = pointer("blocks")
	}
	return func(e Register, v VecVirtual) {
		by, at := YMM(), GP64()
		MOVQ(e, at)
		SHRQ(CL, at)
		if kind == tableScales {
			MOVBLZX(Mem{Base: blocks, Index: at, Scale: 1}, at.As32())
		}
		VBROADCASTSS(Mem{Base: scales, Index: at, Scale: 4}, by)
		VMULPS(by, v, v)
	}
}
