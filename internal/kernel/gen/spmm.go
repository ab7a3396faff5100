package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// spmmFamily is the product of sparse rows, in quads of four rows, and panels of a dense matrix; see SparseRows in
// ../spmm.go.
func spmmFamily() {
	for vectors := 1; vectors <= 4; vectors++ {
		spmm(vectorRow{vectors, ymm})
	}
	for vectors := 1; vectors <= 8; vectors++ {
		spmmAt(vectorRow{vectors, ymm})
	}
	for vectors := 2; vectors <= 4; vectors++ {
		spmm(vectorRow{vectors, zmm})
	}
	for vectors := 2; vectors <= 14; vectors++ {
		spmmAt(vectorRow{vectors, zmm})
	}
	spmv()
	decodeSparse("sparseInt8AVX2", 1, func(from Mem, v VecVirtual) {
		VPMOVSXBD(from, v)
		VCVTDQ2PS(v, v)
	})
	decodeSparse("sparseHalfAVX2", 2, func(from Mem, v VecVirtual) { VCVTPH2PS(from, v) })
	int32FromFloat()
}

// quadHead is the size in bytes of a quad before its indices: four rows and a count.
const quadHead = 6

// quadPointers advance through a quad.
type quadPointers struct {
	index, values, count GPVirtual
}

// each calls f for the index of an element of each of the first rows. The indices are one load, as loads limit the
// kernels.
func (q *quadPointers) each(rows int, f func(r int, k GPVirtual)) {
	rest := GP64()
	switch rows {
	case 4:
		MOVL(Mem{Base: q.index}, rest.As32())
	case 2:
		MOVWQZX(Mem{Base: q.index}, rest)
	default:
		MOVBQZX(Mem{Base: q.index}, rest)
	}
	for r := range rows {
		k := rest
		if r < rows-1 {
			k = GP64()
			MOVBQZX(rest.As8(), k)
			SHRQ(U8(8), rest)
		}
		f(r, k)
	}
}

// A vectorRow is a row of columns in registers of a width, the last one of which is half filled if their number is odd
// in vectors of eight columns.
type vectorRow struct {
	vectors int // of eight columns
	width   width
}

// registers is the number of registers.
func (v vectorRow) registers() int { return (v.bytes() + v.width.bytes - 1) / v.width.bytes }

// bytes is the size of the row.
func (v vectorRow) bytes() int { return v.vectors * vector }

// part is register i of those of a row, or its half with the columns of the row.
func (v vectorRow) part(i int, of VecVirtual) Op {
	if (i+1)*v.width.bytes > v.bytes() {
		return of.AsY()
	}
	return of
}

// rows is the number of rows whose sums the registers hold, with the vectors that are multiplied: a sum has a latency
// of four cycles.
func (v vectorRow) rows() int {
	switch {
	case v.width.wide() || v.vectors < 4:
		return 4
	case v.vectors == 4:
		return 2
	}
	return 1
}

// spmm multiplies quads by columns of x in vectors, which are in panels of two vectors.
func spmm(v vectorRow) {
	name := fmt.Sprintf("spmm%d%s", v.vectors, v.width.name)
	function(name, "func(sums *float32, index *byte, quads int, values *float32, x *float32, panel, add int)",
		fmt.Sprintf("%s stores products of quads and %d columns of x, or adds them to sums; panel in bytes, quads > 0.",
			name, 8*v.vectors))
	sums, quads := pointer("sums"), pointer("quads")
	q := quadPointers{index: pointer("index"), values: pointer("values")}
	panels := []GPVirtual{pointer("x")}
	if v.vectors > 2 {
		second := GP64()
		MOVQ(panels[0], second)
		ADDQ(parameter("panel"), second)
		panels = append(panels, second)
	}
	multiplyQuads(q, sums, quads, v, func(k GPVirtual) { SHLQ(U8(6), k) }, func(k GPVirtual, at int) Mem {
		return Mem{Base: panels[at/panelBytes], Disp: at % panelBytes, Index: k, Scale: 1}
	})
}

// spmmAt multiplies quads by columns of x in vectors. Row k of x is at an offset of its own.
func spmmAt(v vectorRow) {
	name := fmt.Sprintf("spmmAt%d%s", v.vectors, v.width.name)
	function(name, "func(sums *float32, index *byte, quads int, values, x *float32, offsets *int32, add int)",
		fmt.Sprintf("%s stores products of quads and %d columns of x, or adds them to sums; row k of x is at offsets[k] "+
			">= 0; quads > 0.", name, 8*v.vectors))
	sums, quads := pointer("sums"), pointer("quads")
	q := quadPointers{index: pointer("index"), values: pointer("values")}
	x, offsets := pointer("x"), pointer("offsets")
	multiplyQuads(q, sums, quads, v, func(k GPVirtual) { MOVL(Mem{Base: offsets, Index: k, Scale: 4}, k.As32()) },
		func(k GPVirtual, at int) Mem {
			return Mem{Base: x, Disp: at, Index: k, Scale: 4}
		})
}

// multiplyQuads multiplies quads by rows of x. An index is converted by offset, and its vectors are those of row, some
// bytes after its start. All columns of as many rows are summed at once as the registers hold.
func multiplyQuads(q quadPointers, sums, quads GPVirtual, v vectorRow, offset func(k GPVirtual),
	row func(k GPVirtual, at int) Mem) {
	rows := v.rows()
	Label("quad")
	head := GP64()
	MOVQ(q.index, head)
	for first := 0; first < 4; first += rows {
		pass := quadPointers{GP64(), GP64(), GP64()}
		MOVWQZX(Mem{Base: head, Disp: 4}, pass.count)
		LEAQ(Mem{Base: head, Disp: quadHead + first}, pass.index)
		LEAQ(Mem{Base: q.values, Disp: 4 * first}, pass.values)
		acc := tile{rows, v.registers() * v.width.bytes / 4, v.width, floats}.zeros()
		loop(fmt.Sprint("pass", first), pass.count, func() {
			pass.each(rows, func(r int, k GPVirtual) {
				w := v.width.new()
				offset(k)
				VBROADCASTSS(Mem{Base: pass.values, Disp: 4 * r}, w)
				for i, sum := range acc[r] {
					VFMADD231PS(row(k, i*v.width.bytes), v.part(i, w), v.part(i, sum))
				}
			})
			advance(pass.index, 4)
			advance(pass.values, 16)
		})
		storeQuad(sums, head, acc, first, v)
		// The last pass ends at the next quad, from its own first row on.
		if last := 4 - rows; first == last {
			LEAQ(Mem{Base: pass.index, Disp: -last}, q.index)
			LEAQ(Mem{Base: pass.values, Disp: -4 * last}, q.values)
		}
	}
	DECQ(quads)
	JNZ(LabelRef("quad"))
	finish()
}

// storeQuad stores or adds the sums of rows of a quad from row first on.
func storeQuad(sums, head GPVirtual, acc [][]VecVirtual, first int, v vectorRow) {
	store := fmt.Sprint("store", first)
	rows := make([]GPVirtual, len(acc))
	for r := range acc {
		rows[r] = GP64()
		MOVBQZX(Mem{Base: head, Disp: first + r}, rows[r])
		IMUL3Q(U32(v.bytes()), rows[r], rows[r])
		ADDQ(sums, rows[r])
	}
	each := func(do func(m Mem, sum Op)) {
		for r := range acc {
			for i, sum := range acc[r] {
				do(Mem{Base: rows[r], Disp: i * v.width.bytes}, v.part(i, sum))
			}
		}
	}
	CMPQ(parameter("add"), U8(0))
	JEQ(LabelRef(store))
	each(func(m Mem, sum Op) { VADDPS(m, sum, sum) })
	Label(store)
	each(func(m Mem, sum Op) { VMOVUPS(sum, m) })
}

// loop runs body n times.
func loop(label string, n GPVirtual, body func()) {
	TESTQ(n, n)
	JZ(LabelRef(label + "End"))
	Label(label)
	body()
	DECQ(n)
	JNZ(LabelRef(label))
	Label(label + "End")
}

// spmv multiplies quads by one column: the four rows are the lanes of a vector. Two quads are summed at once, as a sum
// has a latency of four cycles; the second one has as many elements or more.
func spmv() {
	function("spmvAVX2", "func(sums *float32, index *byte, quads int, values *float32, x *float32, add int)",
		"spmvAVX2 stores products of quads and a vector, or adds them to sums; quads > 0.")
	index, values, x := pointer("index"), pointer("values"), pointer("x")
	Label("pair")
	first := newColumnQuad(index, values)
	CMPQ(parameter("quads"), U8(1))
	JEQ(LabelRef("last"))
	second := newColumnQuad(index, values)
	// Quads are in the order of their counts, so the second one has the rest.
	SUBQ(first.count, second.count)
	loop("both", first.count, func() {
		first.step(x)
		second.step(x)
	})
	loop("rest", second.count, func() { second.step(x) })
	first.store("storeFirst")
	second.store("storeSecond")
	MOVQ(second.index, index)
	MOVQ(second.values, values)
	SUBQ(U8(2), parameter("quads"))
	JNZ(LabelRef("pair"))
	finish()
	Label("last")
	loop("one", first.count, func() { first.step(x) })
	first.store("storeLast")
	finish()
}

// A columnQuad is a quad that is multiplied by one column.
type columnQuad struct {
	quadPointers
	head GPVirtual
	sum  VecVirtual
}

// newColumnQuad returns the quad at index and values, which become those of the next one.
func newColumnQuad(index, values GPVirtual) *columnQuad {
	q := &columnQuad{quadPointers{GP64(), GP64(), GP64()}, GP64(), XMM()}
	MOVQ(index, q.head)
	MOVWQZX(Mem{Base: index, Disp: 4}, q.count)
	LEAQ(Mem{Base: index, Disp: quadHead}, q.index)
	MOVQ(values, q.values)
	LEAQ(Mem{Base: q.index, Index: q.count, Scale: 4}, index)
	LEAQ(Mem{Base: values, Index: q.count, Scale: 8}, values)
	LEAQ(Mem{Base: values, Index: q.count, Scale: 8}, values)
	VXORPS(q.sum, q.sum, q.sum)
	return q
}

// step adds the products of an element of each row.
func (q *columnQuad) step(x GPVirtual) {
	lanes := XMM()
	q.each(4, func(r int, k GPVirtual) { lane(r, Mem{Base: x, Index: k, Scale: 4}, lanes) })
	VFMADD231PS(Mem{Base: q.values}, lanes, q.sum)
	advance(q.index, 4)
	advance(q.values, 16)
}

// lane loads lane r of x; lane 0 clears the others.
func lane(r int, from Mem, x VecVirtual) {
	if r == 0 {
		VMOVSS(from, x)
		return
	}
	VINSERTPS(U8(r<<4), from, x, x)
}

// store stores or adds the sums.
func (q *columnQuad) store(label string) {
	sums := pointer("sums")
	old, row := XMM(), GP64()
	each := func(do func(r int, m Mem)) {
		for r := range 4 {
			MOVBQZX(Mem{Base: q.head, Disp: r}, row)
			do(r, Mem{Base: sums, Index: row, Scale: 4})
		}
	}
	CMPQ(parameter("add"), U8(0))
	JEQ(LabelRef(label))
	each(func(r int, from Mem) { lane(r, from, old) })
	VADDPS(old, q.sum, q.sum)
	Label(label)
	each(func(r int, to Mem) { VEXTRACTPS(U8(r), q.sum, to) })
}

// decodeSparse writes the values of quads, of a type of size bytes, times the scales of their rows: two elements of
// each row at a time, and after an odd count four numbers that the next quad overwrites.
func decodeSparse(name string, size int, widen func(from Mem, v VecVirtual)) {
	function(name, "func(dst *float32, stored, index *byte, quads int, scales *float32)",
		name+" writes the values of quads times the scales of their rows, and reads and writes up to four more; quads > 0.")
	dst, stored, index, quads, scales := pointer("dst"), pointer("stored"), pointer("index"), pointer("quads"),
		pointer("scales")
	Label("quad")
	scale, count, row := YMM(), GP64(), GP64()
	for r := range 4 {
		MOVBQZX(Mem{Base: index, Disp: r}, row)
		lane(r, Mem{Base: scales, Index: row, Scale: 4}, scale.AsX().(VecVirtual))
	}
	VINSERTF128(U8(1), scale.AsX(), scale, scale)
	MOVWQZX(Mem{Base: index, Disp: 4}, count)
	LEAQ(Mem{Base: index, Index: count, Scale: 4, Disp: quadHead}, index)
	end, from, to := GP64(), GP64(), GP64()
	MOVQ(stored, from)
	MOVQ(dst, to)
	SHLQ(U8(2), count)
	LEAQ(Mem{Base: stored, Index: count, Scale: uint8(size)}, stored)
	LEAQ(Mem{Base: dst, Index: count, Scale: 4}, dst)
	MOVQ(dst, end)
	JMP(LabelRef("next"))
	Label("pair")
	v := YMM()
	widen(Mem{Base: from}, v)
	VMULPS(scale, v, v)
	VMOVUPS(v, Mem{Base: to})
	advance(from, 8*size)
	advance(to, vector)
	Label("next")
	CMPQ(to, end)
	JB(LabelRef("pair"))
	DECQ(quads)
	JNZ(LabelRef("quad"))
	finish()
}

// int32FromFloat converts floats that are integers.
func int32FromFloat() {
	function("int32FromFloatAVX2", "func(dst *int32, x *float32, n int)", "int32FromFloatAVX2 truncates; n%8 == 0.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	v := YMM()
	strips("eight", n, 8, func() {
		VCVTTPS2DQ(at(x, 0), v)
		VMOVUPS(v, at(dst, 0))
		advance(x, vector)
		advance(dst, vector)
	})
	finish()
}
