package gemm

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Block sizes of float32. depth affects results: sums of depth products are rounded separately before they are added up, on every CPU.
// height bounds a block of A by the size of the L2 cache.
const (
	depth  = 256
	height = 180
)

// A FloatProduct is C = A·B, or with Accumulate C += A·B, followed by the epilogue. Exactly one of B, Packed and Panels is set.
type FloatProduct struct {
	A      Matrix[float32]
	B      Matrix[float32]
	Packed *PackedFloat
	Panels Panels[float32]

	C          []float32 // row-major
	Stride     int       // elements between rows of C
	Accumulate bool      // requires Alpha 1
	Epilogue   Epilogue
}

// Panels writes the elements (k, n) of B with k0 <= k < k1 and n0 <= n < n1 to dst[(k-k0)*16+n-n0]. There are at most 16 columns, and n0 is
// a multiple of 16; elements of dst from column n1-n0 to 16 are ignored. It is called by several workers concurrently, and for the same
// part several times if the product has many rows.
type Panels[T any] func(dst []T, k0, k1, n0, n1 int)

// FloatWork is the scratch memory in bytes of Float for this number of products of this shape. packed means that B is prepacked; otherwise
// a block of it is packed into the scratch memory.
func FloatWork(s Shape, batch, workers int, packed bool) int64 {
	g := newFloatTiling(s, batch, workers)
	return 4 * int64(min(workers, batch*g.tiles())) * int64(g.floatSlot(packed))
}

func newFloatTiling(s Shape, batch, workers int) tiling {
	return newTiling(s, max(s.M, 1), batch, workers)
}

// floatSlot is the number of elements of scratch memory per tile.
func (g tiling) floatSlot(packed bool) int {
	k := min(g.K, depth)
	n := roundUp(min(g.rows, height), rowStep) * k
	if !packed {
		n += roundUp(g.cols, kernel.GemmPanel) * k
	}
	return roundUp(n, 16)
}

// Float computes products of one shape, sharing their tiles over p. work is scratch memory of the size that FloatWork returns for them; it
// need not be cleared. Outputs must not overlap one another or the operands.
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
	g, scratch := newFloatTiling(s, len(products), p.Workers()), kernel.Words[float32](work)
	slots, tiles := g.floatSlot(packed), g.tiles()
	distribute(p, len(products)*tiles, func(task, slot int) {
		rows, cols := g.tile(task % tiles)
		t := floatTile{&products[task/tiles], g.Shape, rows, cols, scratch[slot*slots:][:slots]}
		t.run()
	})
}

// check panics unless all operands are valid.
func (p *FloatProduct) check(s Shape, packed bool) {
	if packed != (p.Packed != nil) {
		panic("gemm: products of one call must all be packed, or none")
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
