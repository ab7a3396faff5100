package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// convFamily is what convolutions do beside the product: writing panels of patches, and windows of one
// channel.
func convFamily() {
	for _, table := range []bool{false, true} {
		for _, stride := range []int{1, 2} {
			for _, keep := range []bool{false, true} {
				packLanes(table, stride, keep)
			}
		}
	}
	weightRows()
}

// packLanes copies blocks of a panel. What lies before and behind a block is not read: its lanes are
// masked, and the pointer begins so far before the block that its first element is in its lane.
// Rows of x lie from bytes apart, those of dst to, or where a table of elements says, and then
// those of dst lie side by side.
func packLanes(table bool, stride int, keep bool) {
	verb, doing, steps := "Set", "clears the others", "to, from int"
	if keep {
		verb, doing = "Keep", "keeps the others"
	}
	if table {
		verb, steps = "At"+verb, "at *int32"
	}
	name := fmt.Sprintf("packLanes%s%dAVX2", verb, stride)
	function(name, fmt.Sprintf("func(dst, x *float32, rows int, %s, back int, after, before *int32)", steps),
		fmt.Sprintf("%s writes the lanes of both masks and %s; it reads from back bytes before x; strides in bytes.", name, doing))
	dst, x, rows := pointer("dst"), pointer("x"), pointer("rows")
	after, before := pointer("after"), pointer("before")
	SUBQ(parameter("back"), x)
	masks := []VecVirtual{YMM(), YMM()}
	for i, m := range masks {
		VMOVDQU(at(after, i), m)
		VPAND(at(before, i), m, m)
	}
	read := masks
	if stride == 2 {
		read = evenLanes(masks)
	}
	row := func(x Mem) {
		for i, v := range lanes(x, read, stride) {
			if keep {
				old := YMM()
				VMOVUPS(at(dst, i), old)
				VBLENDVPS(masks[i], v, old, v)
			}
			VMOVUPS(v, at(dst, i))
		}
	}
	if table {
		offsets := pointer("at")
		strips("rows", rows, 1, func() {
			off := GP64()
			MOVLQSX(Mem{Base: offsets}, off)
			row(Mem{Base: x, Index: off, Scale: 4})
			advance(offsets, 4)
			advance(dst, panelBytes)
		})
		finish()
		return
	}
	to, from := pointer("to"), pointer("from")
	strips("rows", rows, 1, func() {
		row(Mem{Base: x})
		ADDQ(to, dst)
		ADDQ(from, x)
	})
	finish()
}

// evenLanes spreads masks over twice as many lanes, of which the odd ones are masked.
func evenLanes(masks []VecVirtual) []VecVirtual {
	var wide []VecVirtual
	for _, m := range masks {
		low, high, upper := YMM(), YMM(), XMM()
		VPMOVZXDQ(m.AsX(), low)
		VEXTRACTI128(U8(1), m, upper)
		VPMOVZXDQ(upper, high)
		wide = append(wide, low, high)
	}
	return wide
}

// lanes are the 16 elements at x, stride apart; those that are masked are 0.
func lanes(x Mem, masks []VecVirtual, stride int) []VecVirtual {
	v := each(len(masks), func(i int) VecVirtual {
		y := YMM()
		VMASKMOVPS(x.Offset(i*vector), masks[i], y)
		return y
	})
	if stride == 1 {
		return v
	}
	for i := range 2 {
		VSHUFPS(U8(0x88), v[2*i+1], v[2*i], v[i])
		VPERMPD(U8(0xd8), v[i], v[i])
	}
	return v[:2]
}

// weightRows sums rows of one channel with weights. Products and sums are rounded as in plain Go.
func weightRows() {
	function("weightRowsAVX2", "func(y *float32, n int, x *float32, at *int64, w *float32, taps int, first float32)",
		"weightRowsAVX2 adds up rows at offsets of x; n%8 == 0, taps > 0.")
	y, n, x := pointer("y"), pointer("n"), pointer("x")
	offsets, w, taps, first := pointer("at"), pointer("w"), pointer("taps"), spread("first")
	sum := func(vectors int) func() {
		return func() {
			sums := each(vectors, func(int) VecVirtual {
				s := YMM()
				VMOVAPS(first, s)
				return s
			})
			i := GP64()
			XORQ(i, i)
			label := fmt.Sprintf("taps%d", vectors)
			Label(label)
			row, weight := GP64(), YMM()
			MOVQ(Mem{Base: offsets, Index: i, Scale: 8}, row)
			LEAQ(Mem{Base: x, Index: row, Scale: 4}, row)
			VBROADCASTSS(Mem{Base: w, Index: i, Scale: 4}, weight)
			for j, s := range sums {
				t := YMM()
				VMULPS(at(row, j), weight, t)
				VADDPS(t, s, s)
			}
			INCQ(i)
			CMPQ(i, taps)
			JLT(LabelRef(label))
			for j, s := range sums {
				VMOVUPS(s, at(y, j))
			}
			advance(x, vectors*vector)
			advance(y, vectors*vector)
		}
	}
	strips("wide", n, 32, sum(4))
	strips("narrow", n, 8, sum(1))
	finish()
}
