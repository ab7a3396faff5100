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
}

func rowSums() []rowSum {
	x, ab := []string{"x"}, []string{"a", "b"}
	sum := func(sums pair, in []pair, _ VecVirtual) pair { return accumulate(sums, in[0]) }
	expSum := func(sums pair, in []pair, top VecVirtual) pair {
		d := atLeast(sub(in[0], both(top)), bound(expLeast))
		return accumulate(sums, expPair(d))
	}
	product := func(sums pair, in []pair, _ VecVirtual) pair { addProduct(sums, in[0], in[1]); return sums }
	square := func(sums pair, in []pair, center VecVirtual) pair {
		d := sub(in[0], both(center))
		addProduct(sums, d, d)
		return sums
	}
	return []rowSum{
		{"sumAVX2", "func(lanes *float64, x *float32, n int)", x, "", false, sum},
		{"dotAVX2", "func(lanes *float64, a, b *float32, n int)", ab, "", false, product},
		{"squaresAVX2", "func(lanes *float64, x *float32, n int, center float64)", x, "center", false, square},
		{"expSumAVX2", "func(lanes *float64, x *float32, n int, top float64)", x, "top", false, expSum},
		{"expSumStoreAVX2", "func(lanes *float64, dst, x *float32, n int, top float64)", x, "top", true, expSum},
	}
}

func accumulate(sums, v pair) pair {
	for i := range sums {
		VADDPD(v[i], sums[i], sums[i])
	}
	return v
}

func (r rowSum) write() {
	function(r.name, r.signature, r.name+" needs FMA and n%8 == 0; it writes a sumLanes.")
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
		number = spread64(r.number)
	}
	sums := pair{zero(), zero()}
	strips("loop", n, 8, func() {
		var in []pair
		for _, p := range inputs {
			in = append(in, loadPair(p, 0))
		}
		added := r.add(sums, in, number)
		if r.output {
			added.store(dst, 0)
		}
		advanceAll(pointers, vector)
	})
	VMOVUPD(sums[0], at(lanes, 0))
	VMOVUPD(sums[1], at(lanes, 1))
	finish()
}

func subTwice() {
	function("subTwiceAVX2", "func(dst, x *float32, n int, first, second float64)", "subTwiceAVX2 needs n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	first, second := spread64("first"), spread64("second")
	strips("loop", n, 8, func() {
		sub(sub(loadPair(x, 0), both(first)), both(second)).store(dst, 0)
		advanceAll([]Register{x, dst}, vector)
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
	center, scale := spread64("center"), spread64("scale")
	strips("loop", n, 8, func() {
		v, g := mul(sub(loadPair(x, 0), both(center)), both(scale)), loadPair(gamma, 0)
		if shifted {
			b := loadPair(beta, 0)
			addProduct(b, v, g)
			b.store(dst, 0)
		} else {
			mul(v, g).store(dst, 0)
		}
		advanceAll(pointers, vector)
	})
	finish()
}
