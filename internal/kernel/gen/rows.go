package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// A rowSum adds to eight running sums, lanes, which start at zero.
type rowSum struct {
	name      string
	signature string
	inputs    []string
	number    string // a float64 parameter, if any
	output    bool   // whether the addends are stored in dst
	add       func(sums pair, in []pair, s VecVirtual) (added pair)
	widths    []width
}

func rowSums() []rowSum {
	x, ab := []string{"x"}, []string{"a", "b"}
	sum := func(sums pair, in []pair, _ VecVirtual) pair { return accumulate(sums, in[0]) }
	expSum := func(sums pair, in []pair, top VecVirtual) pair {
		d := sub(in[0], both(top))
		d = atLeast(d, d.width().bound(expLeast))
		return accumulate(sums, expPair(d))
	}
	product := func(sums pair, in []pair, _ VecVirtual) pair { addProduct(sums, in[0], in[1]); return sums }
	square := func(sums pair, in []pair, center VecVirtual) pair {
		d := sub(in[0], both(center))
		addProduct(sums, d, d)
		return sums
	}
	return []rowSum{
		{"sum", "func(lanes *float64, x *float32, n int)", x, "", false, sum, []width{ymm}},
		{"dot", "func(lanes *float64, a, b *float32, n int)", ab, "", false, product, []width{ymm}},
		{"squares", "func(lanes *float64, x *float32, n int, center float64)", x, "center", false, square,
			[]width{ymm}},
		{"expSum", "func(lanes *float64, x *float32, n int, top float64)", x, "top", false, expSum, []width{ymm, zmm}},
		{"expSumStore", "func(lanes *float64, dst, x *float32, n int, top float64)", x, "top", true, expSum,
			[]width{ymm, zmm}},
	}
}

func accumulate(sums, v pair) pair {
	for i := range v {
		VADDPD(v[i], sums.of(i), sums.of(i))
	}
	return v
}

// write has all lanes in one register of AVX-512, to which it adds both registers of a pair.
func (r rowSum) write(w width) {
	name := r.name + w.name
	function(name, r.signature, name+" needs FMA and n%8 == 0; it writes a sumLanes.")
	lanes, n := pointer("lanes"), pointer("n")
	var inputs []Register
	for _, name := range r.inputs {
		inputs = append(inputs, pointer(name))
	}
	pointers, number := inputs, VecVirtual(nil)
	var dst GPVirtual
	if r.output {
		dst = pointer("dst")
		pointers = append(pointers, dst)
	}
	if r.number != "" {
		number = w.spread64(r.number)
	}
	sums := pair(each(panelBytes/w.bytes, func(int) VecVirtual { return w.zero() }))
	w.pairs(n, pointers, func(registers int) {
		var in []pair
		for _, p := range inputs {
			in = append(in, w.pairAt(p, registers))
		}
		added := r.add(sums, in, number)
		if r.output {
			added.store(dst)
		}
	})
	for i, s := range sums {
		VMOVUPD(s, w.at(lanes, i))
	}
	finish()
}

func subTwice() {
	function("subTwiceAVX2", "func(dst, x *float32, n int, first, second float64)", "subTwiceAVX2 needs n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	first, second := ymm.spread64("first"), ymm.spread64("second")
	ymm.pairs(n, []Register{x, dst}, func(registers int) {
		sub(sub(ymm.pairAt(x, registers), both(first)), both(second)).store(dst)
	})
	finish()
}

// scaleAbout is the last step of normalizations.
func scaleAbout(name string, shifted bool) {
	signature := "func(dst, x, gamma *float32, n int, center, scale float64)"
	if shifted {
		signature = "func(dst, x, gamma, beta *float32, n int, center, scale float64)"
	}
	function(name, signature, name+" needs FMA and n%8 == 0.")
	dst, x, gamma, n := pointer("dst"), pointer("x"), pointer("gamma"), pointer("n")
	pointers := []Register{dst, x, gamma}
	var beta GPVirtual
	if shifted {
		beta = pointer("beta")
		pointers = append(pointers, beta)
	}
	center, scale := ymm.spread64("center"), ymm.spread64("scale")
	ymm.pairs(n, pointers, func(registers int) {
		v, g := mul(sub(ymm.pairAt(x, registers), both(center)), both(scale)), ymm.pairAt(gamma, registers)
		if shifted {
			b := ymm.pairAt(beta, registers)
			addProduct(b, v, g)
			b.store(dst)
		} else {
			mul(v, g).store(dst)
		}
	})
	finish()
}
