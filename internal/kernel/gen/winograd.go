package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// winograd is the transforms of Winograd's F(2×2, 3×3), of a vector of channels of one tile at a time: the elements of
// a pixel are adjacent.
func winograd() {
	for _, w := range []width{ymm, zmm} {
		winogradInput(w)
		winogradOutput(w)
	}
}

// eachTile runs body for the tiles, and each vector of the channels of a tile.
func eachTile(w width, channels Register, body, next func()) {
	tiles := pointer("tiles")
	Label("tile")
	n := GP64()
	MOVQ(channels, n)
	Label("vector")
	body()
	SUBQ(U32(w.bytes), n)
	JNZ(LabelRef("vector"))
	next()
	DECQ(tiles)
	JNZ(LabelRef("tile"))
}

// winogradInput transforms tiles of 4×4 pixels that start two columns apart, first along the rows and then along the
// columns.
func winogradInput(w width) {
	name := "winogradInput" + w.name
	function(name, "func(v *float32, step int, x *float32, line, channels, tiles int)",
		name+" transforms tiles > 0; strides in bytes; channels is the size of a pixel in bytes, whole registers.")
	v, step, channels := pointer("v"), pointer("step"), pointer("channels")
	rows := fourRows("x", "line")
	threeChannels := GP64()
	LEAQ(Mem{Base: channels, Index: channels, Scale: 2}, threeChannels)
	pixel := func(row, column int) Mem {
		m := Mem{Base: rows[row]}
		switch column {
		case 1, 2:
			m.Index, m.Scale = channels, uint8(column)
		case 3:
			m.Index, m.Scale = threeChannels, 1
		}
		return m
	}
	eachTile(w, channels, func() {
		to := GP64()
		MOVQ(v, to)
		// Bᵀ·d: d0 - d2, d1 + d2, d2 - d1 and d1 - d3; a row with a negative number is added.
		for _, difference := range [][2]int{{0, 2}, {1, -2}, {2, 1}, {1, 3}} {
			down := each(4, func(i int) VecVirtual {
				u := w.new()
				VMOVUPS(pixel(difference[0], i), u)
				if difference[1] < 0 {
					VADDPS(pixel(-difference[1], i), u, u)
				} else {
					VSUBPS(pixel(difference[1], i), u, u)
				}
				return u
			})
			for _, u := range acrossTile(w, down) {
				VMOVUPS(u, Mem{Base: to})
				ADDQ(step, to)
			}
		}
		for _, row := range rows {
			advance(row, w.bytes)
		}
		advance(v, w.bytes)
	}, func() {
		for _, row := range rows {
			ADDQ(channels, row)
		}
	})
	finish()
}

// acrossTile transforms four pixels along the columns.
func acrossTile(w width, u []VecVirtual) []VecVirtual {
	sum := w.new()
	VADDPS(u[2], u[1], sum)
	VSUBPS(u[2], u[0], u[0])
	VSUBPS(u[1], u[2], u[2])
	VSUBPS(u[3], u[1], u[1])
	return []VecVirtual{u[0], sum, u[2], u[1]}
}

// fourRows are pointers to rows that are a stride apart.
func fourRows(first, stride string) []GPVirtual {
	rows, distance := []GPVirtual{pointer(first)}, pointer(stride)
	for i := range 3 {
		next := GP64()
		LEAQ(Mem{Base: rows[i], Index: distance, Scale: 1}, next)
		rows = append(rows, next)
	}
	return rows
}

// winogradOutput transforms 16 sums to a tile of 2×2 pixels.
func winogradOutput(w width) {
	name := "winogradOutput" + w.name
	function(name, "func(y *float32, line int, m *float32, step, channels, tiles int, first *float32)",
		name+" transforms tiles > 0, plus first; strides in bytes; channels is the size of a pixel in bytes, whole "+
			"registers.")
	m, step, channels := pointer("m"), pointer("step"), pointer("channels")
	upper := pointer("y")
	lower := GP64()
	MOVQ(upper, lower)
	ADDQ(pointer("line"), lower)
	first := pointer("first")
	eachTile(w, channels, func() {
		from := GP64()
		MOVQ(m, from)
		next := func(f func(sums Mem)) {
			f(Mem{Base: from})
			ADDQ(step, from)
		}
		// Aᵀ·m: m0 + m1 + m2 and m1 - m2 - m3, added up in the order in which the sums are in memory.
		var above, below [4]VecVirtual
		for i := range above {
			above[i] = w.new()
			next(func(sums Mem) { VMOVUPS(sums, above[i]) })
		}
		for i := range below {
			below[i] = w.new()
			next(func(sums Mem) { VMOVUPS(sums, below[i]) })
			VADDPS(below[i], above[i], above[i])
		}
		for i := range below {
			u := w.new()
			next(func(sums Mem) { VMOVUPS(sums, u) })
			VADDPS(u, above[i], above[i])
			VSUBPS(u, below[i], below[i])
		}
		for _, u := range below {
			next(func(sums Mem) { VSUBPS(sums, u, u) })
		}
		bias := w.loaded(first, 0)
		for i, u := range [][4]VecVirtual{above, below} {
			row := []GPVirtual{upper, lower}[i]
			VADDPS(u[1], u[0], u[0])
			VADDPS(u[2], u[0], u[0])
			VADDPS(bias, u[0], u[0])
			VMOVUPS(u[0], Mem{Base: row})
			VSUBPS(u[2], u[1], u[1])
			VSUBPS(u[3], u[1], u[1])
			VADDPS(bias, u[1], u[1])
			VMOVUPS(u[1], Mem{Base: row, Index: channels, Scale: 1})
			advance(row, w.bytes)
		}
		advance(first, w.bytes)
		advance(m, w.bytes)
	}, func() {
		for _, row := range []GPVirtual{upper, lower} {
			ADDQ(channels, row)
		}
		SUBQ(channels, first)
	})
	finish()
}
