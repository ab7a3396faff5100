package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// depthwiseFamily is float32 windows over images whose channels are adjacent.
func depthwiseFamily() {
	depthwiseFloat(ymm, 4)
	depthwiseFloat(zmm, 6)
}

// depthwiseFloat sums 16 channels by fused multiply-adds for up to high positions at once, to hide latencies and to
// read weights less often; fewer positions have more channels at once.
func depthwiseFloat(v width, high int) {
	name := "depthwiseFloat" + v.name
	function(name, "func(y *float32, to int, x *float32, from, positions int, taps *int, count int, w, first "+
		"*float32, groups int, lo, hi float32)",
		name+" needs FMA; it computes 16·groups channels; to and from in bytes; taps are pairs of offsets; positions, "+
			"count and groups > 0.")
	d := &depthwise{width: v, y: pointer("y"), to: pointer("to"), x: pointer("x"), from: pointer("from"), lo: v.new(),
		hi: v.new()}
	VBROADCASTSS(parameter("lo"), d.lo)
	VBROADCASTSS(parameter("hi"), d.hi)
	d.thrice, d.five = GP64(), GP64()
	LEAQ(Mem{Base: d.from, Index: d.from, Scale: 2}, d.thrice)
	LEAQ(Mem{Base: d.from, Index: d.from, Scale: 4}, d.five)
	positions := pointer("positions")
	for n := high; n > 0; n-- {
		strips(fmt.Sprint("positions", n), positions, n, func() { d.positions(n, max(4/n, 1)) })
	}
	finish()
}

type depthwise struct {
	width
	y, to, x, from, thrice, five GPVirtual
	lo, hi                       VecVirtual
}

// positions computes n positions, of several groups of channels at once and then of one, and advances y and x.
func (d *depthwise) positions(n, several int) {
	init, weights, groups := pointer("first"), pointer("w"), pointer("groups")
	for i, m := range []int{several, 1}[:min(several, 2)] {
		strips(fmt.Sprintf("groups%d_%d", n, i), groups, m, func() {
			vectors := m * d.perPanel()
			sums := each(n*vectors, func(i int) VecVirtual { return d.loaded(init, i%vectors) })
			d.taps(fmt.Sprintf("taps%d_%d", n, i), n, weights, sums)
			d.store(sums, vectors)
			for _, p := range []Register{d.y, d.x, init, weights} {
				advance(p, m*panelBytes)
			}
		})
	}
	// Back to the first channel; a group has 64 bytes.
	Load(Param("groups"), groups)
	SHLQ(U8(6), groups)
	SUBQ(groups, d.y)
	SUBQ(groups, d.x)
	for range n {
		ADDQ(d.from, d.x)
		ADDQ(d.to, d.y)
	}
}

// store bounds and stores sums, of which each position has some vectors.
func (d *depthwise) store(sums []VecVirtual, vectors int) {
	place := GP64()
	MOVQ(d.y, place)
	for i, s := range sums {
		VMAXPS(s, d.lo, s)
		VMINPS(s, d.hi, s)
		if i > 0 && i%vectors == 0 {
			ADDQ(d.to, place)
		}
		VMOVUPS(s, d.at(place, i%vectors))
	}
}

// taps adds the products of the taps to the sums of n positions.
func (d *depthwise) taps(label string, n int, weights GPVirtual, sums []VecVirtual) {
	tap, count, source, weight := pointer("taps"), pointer("count"), GP64(), GP64()
	Label(label)
	MOVQ(Mem{Base: tap}, source)
	LEAQ(Mem{Base: d.x, Index: source, Scale: 4}, source)
	MOVQ(Mem{Base: tap, Disp: 8}, weight)
	vectors := len(sums) / n
	for i := range vectors {
		w := d.new()
		VMOVUPS(Mem{Base: weights, Index: weight, Scale: 4, Disp: i * d.bytes}, w)
		for k := range n {
			VFMADD231PS(d.position(source, k, i), w, sums[k*vectors+i])
		}
	}
	advance(tap, 2*8)
	DECQ(count)
	JNZ(LabelRef(label))
}

// position is vector i of position n < 6 from p on.
func (d *depthwise) position(p Register, n, i int) Mem {
	m := d.at(p, i)
	switch n {
	case 1, 2, 4:
		m.Index, m.Scale = d.from, uint8(n)
	case 3:
		m.Index, m.Scale = d.thrice, 1
	case 5:
		m.Index, m.Scale = d.five, 1
	}
	return m
}
