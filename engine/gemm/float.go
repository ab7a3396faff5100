package gemm

import (
	"fmt"

	"github.com/mcompress/mcompress/kernel"
)

// Blocks of float32. depth is part of what the result is: sums of depth products are rounded on
// their own before they are added up, on every CPU. height bounds a block of A by the L2 cache.
const (
	depth  = 256
	height = 240
)

// A FloatProduct is C = A·B, or with Accumulate C += A·B, followed by the epilogue. Exactly one of
// B, Packed and Panels is set.
type FloatProduct struct {
	A      Matrix[float32]
	B      Matrix[float32]
	Packed *PackedFloat
	Panels Panels[float32]

	C          []float32 // row-major
	Stride     int       // elements between rows of C
	Accumulate bool      // needs Alpha 1
	Epilogue   Epilogue
}

// Panels writes the elements (k, n) of B with k0 <= k < k1 and n0 <= n < n1 to
// dst[(k-k0)*16+n-n0]. There are at most 16 columns, and n0 is a multiple of 16; what dst holds
// between n1-n0 and 16 is not looked at again. It is called by several workers at once, and for the
// same part several times where the product has many rows.
type Panels[T any] func(dst []T, k0, k1, n0, n1 int)

// FloatWork is the number of bytes of scratch that Float wants for so many products of this
// shape. packed says that B is; otherwise there is room for a block of it.
func FloatWork(s Shape, batch, workers int, packed bool) int64 {
	g := newFloatGrid(s, batch, workers)
	return 4 * int64(min(workers, batch*g.tiles())) * int64(g.floatSlot(packed))
}

func newFloatGrid(s Shape, batch, workers int) grid {
	return newGrid(s, max(s.M, 1), batch, workers)
}

// floatSlot is the number of elements of scratch for one tile.
func (g grid) floatSlot(packed bool) int {
	k := min(g.K, depth)
	n := roundUp(min(g.rows, height), rowStep) * k
	if !packed {
		n += roundUp(g.cols, kernel.GemmPanel) * k
	}
	return roundUp(n, 16)
}

// Float computes products of one shape, sharing their tiles over p. work is scratch of the size
// that FloatWork gives for them; it need not be cleared. Outputs must not overlap one another
// or the operands.
func Float(p Pool, s Shape, work []byte, products ...FloatProduct) {
	if s.M <= 0 || s.N <= 0 || len(products) == 0 {
		return
	}
	packed := products[0].Packed != nil
	for i := range products {
		products[i].check(s, packed)
	}
	if want := FloatWork(s, len(products), p.Workers(), packed); int64(len(work)) < want {
		panic(fmt.Sprintf("gemm: scratch of %d bytes, want %d", len(work), want))
	}
	g, scratch := newFloatGrid(s, len(products), p.Workers()), kernel.Words[float32](work)
	slots, tiles := g.floatSlot(packed), g.tiles()
	share(p, len(products)*tiles, func(task, slot int) {
		rows, cols := g.tile(task % tiles)
		t := floatTile{&products[task/tiles], g.Shape, rows, cols, scratch[slot*slots:][:slots]}
		t.run()
	})
}

// check panics unless everything is there.
func (p *FloatProduct) check(s Shape, packed bool) {
	if packed != (p.Packed != nil) {
		panic("gemm: products of one call are packed, or none is")
	}
	if p.Accumulate && p.Epilogue.alpha() != 1 {
		panic("gemm: a product with a factor cannot be accumulated")
	}
	p.A.check("A", s.M, s.K)
	Rows(p.C, p.Stride).check("C", s.M, s.N)
	p.Epilogue.check(s)
	switch {
	case packed:
		p.Packed.check(s)
	case p.Panels == nil:
		p.B.check("B", s.K, s.N)
	}
}

// floatTile is one tile of a product while it is made.
type floatTile struct {
	*FloatProduct
	shape      Shape
	rows, cols span
	work       []float32
}

// run makes blocks of depth, and within them of height: a block of B is used by all rows, then the
// next one is packed.
func (t *floatTile) run() {
	for ks := range (span{0, t.shape.K}).blocks(depth) {
		right := t.right(ks)
		for rows := range t.rows.blocks(height) {
			left := t.left(rows, ks)
			c := t.C[rows.from*t.Stride+t.cols.from:]
			t.multiply(c, left, right, rows.len(), ks)
			if ks.to == t.shape.K {
				t.Epilogue.apply(c, t.Stride, rows, t.cols)
			}
		}
	}
}

func (t *floatTile) multiply(c []float32, a kernel.GemmA, b kernel.GemmB, m int, ks span) {
	add := t.Accumulate || ks.from > 0
	kernel.GemmFloat(c, t.Stride, a, b, m, t.cols.len(), ks.len(), add)
}

// left is a block of A, packed into strips at the start of the scratch if it is read often enough.
func (t *floatTile) left(rows, ks span) kernel.GemmA {
	a, high := t.A.from(rows.from, ks.from), kernel.GemmRows()
	if a.Col == 1 || t.cols.len() < packFrom {
		return kernel.GemmA{Data: a.Data, Strip: high * a.Row, Row: a.Row, K: a.Col}
	}
	kernel.PackStrips(t.work, a.Data, a.Row, a.Col, rows.len(), ks.len())
	return kernel.GemmA{Data: t.work, Strip: high * ks.len(), Row: 1, K: high}
}

// packFrom is the number of columns from which A is packed unless its rows are contiguous.
const packFrom = 64

// right is a block of B in panels, at the end of the scratch if they had to be made.
func (t *floatTile) right(ks span) kernel.GemmB {
	if t.Packed != nil {
		return t.Packed.block(ks, t.cols.from)
	}
	size := kernel.GemmPanel * ks.len()
	dst := t.work[len(t.work)-roundUp(t.cols.len(), kernel.GemmPanel)*ks.len():]
	if t.Panels == nil {
		b := t.B.from(ks.from, t.cols.from)
		kernel.PackPanels(dst, size, b.Data, b.Row, b.Col, ks.len(), t.cols.len())
	} else {
		t.fill(dst, ks)
	}
	return kernel.GemmB{Data: dst, Panel: size, K: kernel.GemmPanel}
}

// fill asks for the panels. The missing columns of the last one are cleared, since what lies there
// is multiplied in vain and NaN or denormals would be slow.
func (t *floatTile) fill(dst []float32, ks span) {
	for cols := range t.cols.blocks(kernel.GemmPanel) {
		panel := dst[:kernel.GemmPanel*ks.len()]
		if cols.len() < kernel.GemmPanel {
			clear(panel)
		}
		t.Panels(panel, ks.from, ks.to, cols.from, cols.to)
		dst = dst[len(panel):]
	}
}
