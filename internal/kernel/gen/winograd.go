package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// winograd is the transforms of Winograd's F(2×2, 3×3), eight tiles at a time: four adjacent ones of one row of tiles in the lower half of
// a vector, and four of another row in the upper half.
func winograd() {
	winogradInput()
	winogradOutput()
}

// winogradInput transforms groups of tiles of 4×4 elements that start two columns apart. It reads four rows for each half; elements whose
// mask is clear are not read and count as 0.
func winogradInput() {
	function("winogradInputAVX2", "func(v *float32, step int, rows **float32, back int, mask *int32, groups int)",
		"winogradInputAVX2 reads rows from back bytes before their pointers; steps in bytes.")
	v, step, list, mask, groups := pointer("v"), pointer("step"), pointer("rows"), pointer("mask"), pointer("groups")
	rows := make([]GPVirtual, 8)
	for i := range rows {
		rows[i] = GP64()
		MOVQ(Mem{Base: list, Disp: 8 * i}, rows[i])
		SUBQ(parameter("back"), rows[i])
	}
	// First columns of a half of a vector: four for the even and odd columns of the tiles, and the same two further on.
	columns := []int{0, 4, 2, 6}
	read := func(row, column int) VecVirtual {
		m, y, upper := XMM(), YMM(), XMM()
		VXORPS(y, y, y) // all of it is written, which avo does not infer from the masked move
		VMOVDQU(Mem{Base: mask, Disp: 4 * column}, m)
		VMASKMOVPS(Mem{Base: rows[row], Disp: 4 * column}, m, y.AsX())
		VMASKMOVPS(Mem{Base: rows[row+4], Disp: 4 * column}, m, upper)
		VINSERTF128(U8(1), upper, y, y)
		return y
	}
	strips("groups", groups, 1, func() {
		one := each(4, func(i int) VecVirtual { return read(1, columns[i]) })
		two := each(4, func(i int) VecVirtual { return read(2, columns[i]) })
		to := GP64()
		MOVQ(v, to)
		across := func(down func(i int) VecVirtual) {
			acrossTiles(each(4, down), to, step)
		}
		across(func(i int) VecVirtual { y := read(0, columns[i]); VSUBPS(two[i], y, y); return y })
		across(func(i int) VecVirtual { y := YMM(); VADDPS(one[i], two[i], y); return y })
		across(func(i int) VecVirtual { VSUBPS(one[i], two[i], two[i]); return two[i] })
		across(func(i int) VecVirtual { VSUBPS(read(3, columns[i]), one[i], one[i]); return one[i] })
		for _, row := range rows {
			advance(row, vector)
		}
		advance(mask, vector)
		advance(v, vector)
	})
	finish()
}

// acrossTiles transforms along the columns the result of the transform along the rows, and stores the four elements of every tile step
// apart from to on, which it advances.
func acrossTiles(u []VecVirtual, to, step Register) {
	even, nextEven, odd, nextOdd := YMM(), YMM(), u[0], u[2]
	VSHUFPS(U8(0x88), u[1], u[0], even)
	VSHUFPS(U8(0xdd), u[1], u[0], odd)
	VSHUFPS(U8(0x88), u[3], u[2], nextEven)
	VSHUFPS(U8(0xdd), u[3], u[2], nextOdd)
	store := func(y VecVirtual) {
		VMOVUPS(y, Mem{Base: to})
		ADDQ(step, to)
	}
	VSUBPS(nextEven, even, even)
	store(even)
	VADDPS(nextEven, odd, even)
	store(even)
	VSUBPS(odd, nextEven, nextEven)
	store(nextEven)
	VSUBPS(nextOdd, odd, odd)
	store(odd)
}

// winogradOutput transforms 16 sums to a tile of 2×2 elements.
func winogradOutput() {
	function("winogradOutputAVX2", "func(rows **float32, m *float32, step int, groups int, first float32)",
		"winogradOutputAVX2 writes two rows of elements for each of two rows of tiles, plus first; steps in bytes.")
	list, m, step, groups, first := pointer("rows"), pointer("m"), pointer("step"), pointer("groups"), spread("first")
	rows := make([]GPVirtual, 4)
	for i := range rows {
		rows[i] = GP64()
		MOVQ(Mem{Base: list, Disp: 8 * i}, rows[i])
	}
	strips("groups", groups, 1, func() {
		// The four sums of a row of a tile are step apart, and the rows are contiguous.
		at := make([]GPVirtual, 4)
		for i := range at {
			at[i] = GP64()
			if i == 0 {
				MOVQ(m, at[0])
			} else {
				LEAQ(Mem{Base: at[i-1], Index: step, Scale: 4}, at[i])
			}
		}
		var even, odd [2]VecVirtual
		for j := range 4 {
			upper, lower := downTiles(at)
			for r, s := range []VecVirtual{upper, lower} {
				switch j {
				case 0:
					even[r] = s
				case 1:
					odd[r] = YMM()
					VMOVAPS(s, odd[r])
					VADDPS(s, even[r], even[r])
				case 2:
					VADDPS(s, even[r], even[r])
					VSUBPS(s, odd[r], odd[r])
				case 3:
					VSUBPS(s, odd[r], odd[r])
				}
			}
			for _, p := range at {
				ADDQ(step, p)
			}
		}
		for r := range 2 {
			VADDPS(first, even[r], even[r])
			VADDPS(first, odd[r], odd[r])
			low, high, half := YMM(), YMM(), YMM()
			VUNPCKLPS(odd[r], even[r], low)
			VUNPCKHPS(odd[r], even[r], high)
			VPERM2F128(U8(0x20), high, low, half)
			VMOVUPS(half, Mem{Base: rows[r]})
			VPERM2F128(U8(0x31), high, low, half)
			VMOVUPS(half, Mem{Base: rows[r+2]})
		}
		for _, row := range rows {
			advance(row, vector)
		}
		advance(m, vector)
	})
	finish()
}

// downTiles sums a column of the tile's sums for its two rows.
func downTiles(at []GPVirtual) (upper, lower VecVirtual) {
	middle, next := YMM(), YMM()
	upper, lower = YMM(), YMM()
	VMOVUPS(Mem{Base: at[1]}, middle)
	VMOVUPS(Mem{Base: at[2]}, next)
	VADDPS(Mem{Base: at[0]}, middle, upper)
	VADDPS(next, upper, upper)
	VSUBPS(next, middle, lower)
	VSUBPS(Mem{Base: at[3]}, lower, lower)
	return upper, lower
}
