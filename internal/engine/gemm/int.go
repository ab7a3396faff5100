package gemm

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Block sizes of 8-bit integers: a block of A, which may be widened to int16, fits the L2 cache.
const (
	intDepth  = 1024
	intHeight = 144
)

// An IntProduct is C = (A - AZero)·(B - BZero), exact modulo 2^32. Elements are bytes, uint8 or int8 according to
// ASigned and BSigned. Exactly one of B, Packed and Panels is set; a Packed matrix has its own signedness.
type IntProduct struct {
	A       Matrix[byte]
	Patches func(dst []byte, row, from int) // replaces A: writes the elements of a row from element from on
	ASigned bool
	AZero   []int32 // none, one, or one per row; elements of A's type

	B       Matrix[byte]
	Packed  *PackedInt
	Panels  Panels[byte]
	BSigned bool
	BZero   []int32 // none, one, or one per column; elements of B's type

	C      []int32 // row-major; not used if Finish or Quantized.Data is set
	Stride int     // elements between rows of C

	// Finish replaces C: it receives parts of some rows of sums, from row on, each wide columns from col on, while they
	// are in the cache, for example to requantize them. The sums are not kept. Several workers call it concurrently.
	Finish func(row, col, wide int, sums []int32)

	// Quantized replaces C: the sums are requantized into it, if possible while they are in registers.
	Quantized      Matrix[byte]
	Requantization kernel.Requantization
}

// finishes reports whether the sums are not kept.
func (p *IntProduct) finishes() bool { return p.Finish != nil || p.Quantized.Data != nil }

// EachRow is a function for Finish that calls f with the sums of one row at a time.
func EachRow(f func(row, col int, sums []int32)) func(row, col, wide int, sums []int32) {
	return func(row, col, wide int, sums []int32) {
		for at := 0; at < len(sums); at += wide {
			f(row, col, sums[at:at+wide])
			row++
		}
	}
}

// IntWork is the scratch memory in bytes of Int for this number of products of this shape. packed means that B is
// prepacked, finish that Finish or Quantized is set.
func IntWork(s Shape, batch, workers int, packed, finish bool) int64 {
	g := newIntTiling(s, batch, workers)
	return int64(min(workers, batch*g.tiles())) * int64(g.intSlot(packed, finish).total())
}

// newIntTiling divides between groups of a pairing: A is reordered for each group of a tile.
func newIntTiling(s Shape, batch, workers int) tiling {
	return newTiling(s, intHeight, maxCols, pairGroup, batch, workers)
}

// intSlot is the scratch memory of one tile, in bytes: A in the kernel's layout, sums and zero points of its rows,
// packed B, sums of its columns, C.
type intSlot struct{ left, rows, right, cols, result int }

func (s intSlot) total() int { return s.left + s.rows + s.right + s.cols + s.result }

func (g tiling) intSlot(packed, finish bool) intSlot {
	// Rows of A are padded with zeros to whole quads, which B has, too.
	k := roundUp(min(g.K, intDepth), kernel.GemmQuad)
	s := intSlot{left: g.rows * intRow(k), rows: roundUp(2*4*g.rows, line), cols: roundUp(4*g.cols, line)}
	if !packed {
		s.right = roundUp(g.cols, kernel.GemmPanel) * k
	}
	if finish {
		s.result = roundUp(4*g.rows*g.cols, line)
	}
	return s
}

// intRow is the size in bytes of a row of k elements of A: an odd number of cache lines, as rows at distances of a
// power of two would map to the same lines of the L1 cache.
func intRow(k int) int {
	lines := roundUp(k*kernel.GemmIntWidth(), line) / line
	return (lines | 1) * line
}

// line is the size of a cache line in bytes: parts of the scratch memory are aligned to it.
const line = 64

// Int computes products of one shape, sharing their tiles over p. work is scratch memory of the size that IntWork
// returns for them, aligned to 4 bytes; it need not be cleared.
func Int(p Pool, s Shape, work []byte, products ...IntProduct) {
	if s.M <= 0 || s.N <= 0 || len(products) == 0 {
		return
	}
	packed, finish := products[0].Packed != nil, products[0].finishes()
	for i := range products {
		products[i].check(s, packed, finish)
	}
	if want := IntWork(s, len(products), p.Workers(), packed, finish); int64(len(work)) < want {
		panic(fmt.Sprintf("gemm: scratch of %d bytes, want %d", len(work), want))
	}
	g := newIntTiling(s, len(products), p.Workers())
	layout, tiles := g.intSlot(packed, finish), g.tiles()
	p.Slots(len(products)*tiles, func(task, slot int) {
		t := intTile{IntProduct: &products[task/tiles], depth: s.K}
		t.rows, t.cols = g.tile(task % tiles)
		t.cut(work[slot*layout.total():], layout)
		t.run()
	})
}

// check panics unless all operands are valid.
func (p *IntProduct) check(s Shape, packed, finish bool) {
	if packed != (p.Packed != nil) || finish != p.finishes() {
		panic("gemm: products of one call must all be packed or finished, or none")
	}
	checkZeros("A", p.AZero, s.M)
	checkZeros("B", p.BZero, s.N)
	if p.Patches == nil {
		p.A.check("A", s.M, s.K)
	}
	if p.Quantized.Data != nil {
		p.Quantized.check("the quantized result", s.M, s.N)
	}
	if !finish {
		Rows(p.C, p.Stride).check("C", s.M, s.N)
	}
	switch {
	case packed:
		p.Packed.check(s)
	case p.Panels == nil:
		p.B.check("B", s.K, s.N)
	}
}

func checkZeros(name string, zeros []int32, n int) {
	if len(zeros) > 1 && len(zeros) != n {
		panic(fmt.Sprintf("gemm: %d zero points of %s, want none, 1 or %d", len(zeros), name, n))
	}
}

// zeroAt is the zero point of row or column i.
func zeroAt(zeros []int32, i int) int32 {
	switch len(zeros) {
	case 0:
		return 0
	case 1:
		return zeros[0]
	}
	return zeros[i]
}
