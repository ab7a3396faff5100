package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// convFamily is the functions of convolutions besides the product: writing panels of patches and parts of images, and
// windows of one channel.
func convFamily() {
	for _, table := range []bool{false, true} {
		for _, stride := range []int{1, 2} {
			for _, keep := range []bool{false, true} {
				packLanes(table, stride, keep)
			}
		}
	}
	weightRows(1, 8)
	weightRows(4, 2)
	copyRows()
	winograd()
	table := roundingTable()
	depthwiseBytes("depthwiseSignedAVX2", signedBytes, table)
	depthwiseBytes("depthwiseUnsignedAVX2", unsignedBytes, table)
	maxWindows("maxPairsAVX2", false)
	maxWindows("maxTriplesAVX2", true)
}

// packLanes copies blocks of a panel. Elements before and after a block are not read: their lanes are masked, and the
// pointer starts before the block such that its first element is in its lane. Rows of x are from bytes apart, those of
// dst to, or at the offsets of a table of elements, and then those of dst are contiguous.
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
		fmt.Sprintf("%s writes the lanes of both masks and %s; it reads from back bytes before x; strides in bytes.",
			name, doing))
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

// lanes are the 16 elements at x, stride apart; masked ones are 0.
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
		// Within 128-bit lanes: VPERMPD brings the quarters into order.
		VSHUFPS(U8(0x88), v[2*i+1], v[2*i], v[i])
		VPERMPD(U8(0xd8), v[i], v[i])
	}
	return v[:2]
}

// weightRows sums elements of one channel with weights, for several rows of the output at once, by fused multiply-adds.
// Eight sums are computed at once if possible, to hide latencies.
func weightRows(rows, vectors int) {
	name := fmt.Sprintf("weightRows%dAVX2", rows)
	function(name, "func(y *float32, to int, x *float32, from int, n int, at *int64, w *float32, taps int, first float32)",
		name+" needs FMA; it sums weighted elements at offsets of x; rows are to and from bytes apart; n%8 == 0, taps > 0.")
	t := tile{rows: rows}
	y, x, n := t.operand("y", "to", rows), t.operand("x", "from", rows), pointer("n")
	offsets, w, taps, first := pointer("at"), pointer("w"), pointer("taps"), spread("first")
	sum := func(vectors int) func() {
		return func() {
			sums := each(rows*vectors, func(int) VecVirtual {
				s := YMM()
				VMOVAPS(first, s)
				return s
			})
			i, off, weight := GP64(), GP64(), YMM()
			XORQ(i, i)
			label := fmt.Sprintf("taps%d", vectors)
			Label(label)
			MOVQ(Mem{Base: offsets, Index: i, Scale: 8}, off)
			VBROADCASTSS(Mem{Base: w, Index: i, Scale: 4}, weight)
			for _, p := range x.base {
				LEAQ(Mem{Base: p, Index: off, Scale: 4}, p)
			}
			for k, s := range sums {
				VFMADD231PS(x.at(k/vectors, k%vectors*vector), weight, s)
			}
			NEGQ(off)
			for _, p := range x.base {
				LEAQ(Mem{Base: p, Index: off, Scale: 4}, p)
			}
			INCQ(i)
			CMPQ(i, taps)
			JLT(LabelRef(label))
			for k, s := range sums {
				VMOVUPS(s, y.at(k/vectors, k%vectors*vector))
			}
			for _, p := range append(x.base, y.base...) {
				advance(p, vectors*vector)
			}
		}
	}
	strips("wide", n, vectors*8, sum(vectors))
	strips("narrow", n, 8, sum(1))
	finish()
}
