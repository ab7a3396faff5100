package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// mathFamily is vector mathematics: elementwise arithmetic in float32, functions and sums of rows in float64, with the
// steps of pairs.go.
func mathFamily() {
	for _, e := range elementwises() {
		e.write()
	}
	dequantizeInt32("dequantizeInt32AVX2", false, false)
	dequantizeInt32("dequantizeInt32ColsAVX2", true, false)
	dequantizeInt32("dequantizeInt32ColsBiasAVX2", true, true)
	for _, f := range functions() {
		f.write(ymm)
		f.write(zmm)
	}
	float64Function{"log", logarithm}.write(ymm)
	sincos("sinAVX2", 0)
	sincos("cosAVX2", 1)
	for _, r := range rowSums() {
		for _, w := range r.widths {
			r.write(w)
		}
	}
	subTwice()
	scaleAbout("scaleAboutAVX2", false)
	scaleAbout("scaleShiftAboutAVX2", true)
	dotRows()
	adam()
}

// An elementwise is a float32 function of elements of the inputs and of scalars. compute receives registers with an
// input's elements, or with a scalar in all lanes.
type elementwise struct {
	name            string
	inputs, numbers []string
	constants       []uint32 // further scalars
	compute         func(in, s []VecVirtual) VecVirtual
}

func elementwises() []elementwise {
	x, ab, s := []string{"x"}, []string{"a", "b"}, []string{"s"}
	two := func(f func(x, y VecVirtual) VecVirtual) func(in, s []VecVirtual) VecVirtual {
		return func(in, s []VecVirtual) VecVirtual { all := append(in, s...); return f(all[0], all[1]) }
	}
	swapped := func(f func(x, y VecVirtual) VecVirtual) func(in, s []VecVirtual) VecVirtual {
		return two(func(x, y VecVirtual) VecVirtual { return f(y, x) })
	}
	const one, half, sixth, sign = 0x3f800000, 0x3f000000, 0x3e2aaaab, 0x80000000
	return []elementwise{
		{"addAVX2", ab, nil, nil, two(addPS)},
		{"subAVX2", ab, nil, nil, two(subPS)},
		{"mulAVX2", ab, nil, nil, two(mulPS)},
		{"divAVX2", ab, nil, nil, two(divPS)},
		{"maxAVX2", ab, nil, nil, two(maxPS)},
		{"minAVX2", ab, nil, nil, two(minPS)},
		{"axpyAVX2", ab, s, nil, func(in, s []VecVirtual) VecVirtual { return addPS(in[0], mulPS(s[0], in[1])) }},
		{"addScalarAVX2", x, s, nil, two(addPS)},
		{"scalarSubAVX2", x, s, nil, swapped(subPS)},
		{"mulScalarAVX2", x, s, nil, two(mulPS)},
		{"divScalarAVX2", x, s, nil, two(divPS)},
		{"scalarDivAVX2", x, s, nil, swapped(divPS)},
		{"maxScalarAVX2", x, s, nil, two(maxPS)},
		{"minScalarAVX2", x, s, nil, two(minPS)},
		{"scaleShiftAVX2", x, []string{"scale", "shift"}, nil,
			func(in, s []VecVirtual) VecVirtual { return addPS(mulPS(in[0], s[0]), s[1]) }},
		{"absAVX2", x, nil, []uint32{magnitude}, two(andPS)},
		{"negAVX2", x, nil, []uint32{sign}, two(xorPS)},
		{"reluAVX2", x, nil, []uint32{0}, two(reluPS)},
		{"leakyReluAVX2", x, []string{"alpha"}, []uint32{0},
			func(in, s []VecVirtual) VecVirtual { return leakyPS(in[0], s[0], s[1]) }},
		{"clipAVX2", x, []string{"lo", "hi"}, nil,
			func(in, s []VecVirtual) VecVirtual { return clipPS(in[0], s[0], s[1]) }},
		{"hardSigmoidAVX2", x, []string{"alpha", "beta"}, []uint32{0, one},
			func(in, s []VecVirtual) VecVirtual { return hardSigmoidPS(in[0], s) }},
		{"hardSwishAVX2", x, nil, []uint32{sixth, half, 0, one},
			func(in, s []VecVirtual) VecVirtual { return mulPS(in[0], hardSigmoidPS(in[0], s)) }},
		{"sqrtAVX2", x, nil, nil, func(in, _ []VecVirtual) VecVirtual { return sqrtPS(in[0]) }},
	}
}

// write processes four vectors at a time, then one.
func (e elementwise) write() {
	signature := "func(dst, " + strings.Join(e.inputs, ", ") + " *float32, n int"
	for _, s := range e.numbers {
		signature += ", " + s + " float32"
	}
	function(e.name, signature+")", e.name+" needs n%8 == 0.")
	dst, n := pointer("dst"), pointer("n")
	var inputs []Register
	for _, name := range e.inputs {
		inputs = append(inputs, pointer(name))
	}
	var numbers []VecVirtual
	for _, name := range e.numbers {
		numbers = append(numbers, spread(name))
	}
	for _, c := range e.constants {
		numbers = append(numbers, constant(c))
	}
	wideAndNarrow(n, append(inputs, dst), func(i int) {
		var in []VecVirtual
		for _, p := range inputs {
			v := YMM()
			VMOVUPS(at(p, i), v)
			in = append(in, v)
		}
		VMOVUPS(e.compute(in, numbers), at(dst, i))
	})
	finish()
}

// wideAndNarrow runs body on four vectors at a time, then on one, and advances the pointers.
func wideAndNarrow(n Register, pointers []Register, body func(i int)) {
	for _, s := range []struct {
		label string
		count int
	}{{"wide", 4}, {"narrow", 1}} {
		strips(s.label, n, s.count*8, func() {
			for i := range s.count {
				body(i)
			}
			advanceAll(pointers, s.count*vector)
		})
	}
}

// dequantizeInt32 rounds after each step: conversion, product, sum.
func dequantizeInt32(name string, cols, biased bool) {
	signature := "func(dst *float32, q *int32, n int, scale float32)"
	if cols {
		signature = "func(dst *float32, q *int32, n int, scale *float32)"
	}
	if biased {
		signature = "func(dst *float32, q *int32, n int, scale, bias *float32)"
	}
	function(name, signature, name+" needs n%8 == 0.")
	dst, q, n := pointer("dst"), pointer("q"), pointer("n")
	pointers := []Register{dst, q}
	var scale Op
	var scales, biases GPVirtual
	if cols {
		scales = pointer("scale")
		pointers = append(pointers, scales)
	} else {
		scale = spread("scale")
	}
	if biased {
		biases = pointer("bias")
		pointers = append(pointers, biases)
	}
	wideAndNarrow(n, pointers, func(i int) {
		v := YMM()
		VCVTDQ2PS(at(q, i), v)
		if cols {
			scale = at(scales, i)
		}
		VMULPS(scale, v, v)
		if biased {
			VADDPS(at(biases, i), v, v)
		}
		VMOVUPS(v, at(dst, i))
	})
	finish()
}
