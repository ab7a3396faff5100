package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// adam has the operations of the twin in its order, each rounded.
func adam() {
	function("adamAVX2", "func(w, grad, m, v *float32, n int, coupled, rest1, rest2, beta2, correction, epsilon, "+
		"shrink, rate float32)", "adamAVX2 needs n%8 == 0.")
	n := pointer("n")
	pointers := []Register{pointer("w"), pointer("m"), pointer("v"), pointer("grad")}
	coupled, rest1, rest2, beta2 := spread("coupled"), spread("rest1"), spread("rest2"), spread("beta2")
	correction, epsilon, shrink, rate := spread("correction"), spread("epsilon"), spread("shrink"), spread("rate")
	strips("loop", n, 8, func() {
		in := make([]VecVirtual, len(pointers))
		for i, p := range pointers {
			in[i] = YMM()
			VMOVUPS(at(p, 0), in[i])
		}
		w, m, v, g := in[0], in[1], in[2], in[3]
		g = addPS(g, mulPS(coupled, w))
		m = addPS(m, mulPS(rest1, subPS(g, m)))
		v = addPS(mulPS(v, beta2), mulPS(mulPS(g, rest2), g))
		step := divPS(m, addPS(mulPS(sqrtPS(v), correction), epsilon))
		w = addPS(mulPS(w, shrink), mulPS(rate, step))
		for i, x := range []VecVirtual{w, m, v} {
			VMOVUPS(x, at(pointers[i], 0))
		}
		advanceAll(pointers, vector)
	})
	finish()
}
