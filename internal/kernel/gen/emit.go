package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const vector = 32 // bytes of a YMM register

// function starts a function without checks: its Go caller passes valid lengths.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
}

// finish clears the upper halves, to avoid the penalty for following SSE code.
func finish() {
	VZEROUPPER()
	RET()
}

func pointer(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// spread fills all lanes with the 32-bit parameter. `go vet` takes the integer broadcasts for wider loads, hence the
// float broadcast and the detour.
func spread(name string) VecVirtual {
	y := YMM()
	VBROADCASTSS(parameter(name), y)
	return y
}

// spread16 fills all lanes with the low half of the 32-bit parameter.
func spread16(name string) VecVirtual {
	y := YMM()
	VMOVD(Load(Param(name), GP32()), y.AsX())
	VPBROADCASTW(y.AsX(), y)
	return y
}

func parameter(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// constant fills all lanes with v.
func constant(v uint32) VecVirtual {
	y, r := YMM(), GP32()
	MOVL(U32(v), r)
	VMOVD(r, y.AsX())
	VPBROADCASTD(y.AsX(), y)
	return y
}

// constant64 fills all 64-bit lanes with v.
func constant64(v uint64) VecVirtual {
	y, r := YMM(), GP64()
	MOVQ(U64(v), r)
	VMOVQ(r, y.AsX())
	VPBROADCASTQ(y.AsX(), y)
	return y
}

func zero() VecVirtual {
	y := YMM()
	VPXOR(y, y, y)
	return y
}

// strips runs body while n elements are at least step, and subtracts step from n each time.
func strips(label string, n Register, step int, body func()) {
	SUBQ(U32(step), n)
	JLT(LabelRef(label + "End"))
	Label(label)
	body()
	SUBQ(U32(step), n)
	JGE(LabelRef(label))
	Label(label + "End")
	ADDQ(U32(step), n)
}

// at is the i-th vector after p.
func at(p Register, i int) Mem { return Mem{Base: p, Disp: i * vector} }

func advance(p Register, bytes int) { ADDQ(U32(bytes), p) }

// fold combines the lanes of y into its lowest one.
func fold(y VecVirtual, combine func(a, b, c Op)) Register {
	x, t := y.AsX(), XMM()
	VEXTRACTI128(U8(1), y, t)
	combine(t, x, x)
	VPSHUFD(U8(0x4e), x, t)
	combine(t, x, x)
	VPSHUFD(U8(0xb1), x, t)
	combine(t, x, x)
	r := GP32()
	VMOVD(x, r)
	return r
}
