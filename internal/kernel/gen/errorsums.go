package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func errorLanes() {
	function("errorLanesAVX2", "func(lanes *float64, ref, got *float32, n int)",
		"errorLanesAVX2 writes an errorLanes; n%8 == 0. Products and sums are separate, like the twin's.")
	lanes, ref, got, n := pointer("lanes"), pointer("ref"), pointer("got"), pointer("n")
	var sums [4][2]VecVirtual
	for i := range sums {
		sums[i] = [2]VecVirtual{zero(), zero()}
	}
	top, mask := zero(), constant(magnitude)
	strips("loop", n, 8, func() {
		for half := range 2 {
			addProducts(halfAt(ref, half), halfAt(got, half), sums, half)
		}
		raiseError(top, mask, ref, got)
		advance(ref, vector)
		advance(got, vector)
	})
	for i, s := range sums {
		VMOVUPD(s[0], at(lanes, 2*i))
		VMOVUPD(s[1], at(lanes, 2*i+1))
	}
	VMOVDQU(top, at(lanes, 8))
	finish()
}

func addProducts(ref, got Mem, sums [4][2]VecVirtual, half int) {
	r, g, d := YMM(), YMM(), YMM()
	VCVTPS2PD(ref, r)
	VCVTPS2PD(got, g)
	VSUBPD(r, g, d)
	for i, p := range [4][2]VecVirtual{{r, r}, {d, d}, {g, g}, {r, g}} {
		t := YMM()
		VMULPD(p[0], p[1], t)
		VADDPD(t, sums[i][half], sums[i][half])
	}
}

func raiseError(top, mask VecVirtual, ref, got Register) {
	e := YMM()
	VMOVUPS(at(got, 0), e)
	VSUBPS(at(ref, 0), e, e)
	VPAND(mask, e, e)
	VPMAXSD(e, top, top)
}
