package gemm

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Depth is the number of products that are summed at once: these sums are rounded separately before they are added up.
const Depth = depth

// Block sizes of float32. depth affects results: sums of depth products are rounded separately before they are added
// up, on every CPU. height bounds a block of A by the size of the L2 cache.
const (
	depth  = 256
	height = 180
)

// A FloatProduct is C = A·B, or with Accumulate C += A·B, followed by the epilogue. Exactly one of A, Int8 and Rows is
// set, exactly one of B, Packed, Quantized and Panels, and exactly one of C and Store. Int8 requires Quantized, for
// which it is, and C that is not accumulated.
type FloatProduct struct {
	A         Matrix[float32]
	Int8      *kernel.Int8Rows
	Rows      Fill
	B         Matrix[float32]
	Packed    *PackedFloat
	Quantized *kernel.Quantized
	Panels    Panels[float32]

	C          []float32 // row-major
	Stride     int       // elements between rows of C
	Accumulate bool      // requires Alpha 1 and C
	Epilogue   Epilogue
	Store      Store
}

// Fill writes the elements (i, k) of A with i0 <= i < i1 and k0 <= k < k1 to dst[(i-i0)*(k1-k0)+k-k0], for an A of
// another element type. It is called by several workers concurrently, and for the same part several times if the
// product has many columns.
type Fill func(dst []float32, i0, i1, k0, k1 int)

// Store receives the elements of row i of C from column j on after the epilogue, for a C of another element type. It
// may modify row. It is called by several workers concurrently, once for each element.
type Store func(row []float32, i, j int)

// Panels writes the elements (k, n) of B with k0 <= k < k1 and n0 <= n < n1 to dst[(k-k0)*16+n-n0]. There are at most
// 16 columns, and n0 is a multiple of 16; elements of dst from column n1-n0 to 16 are ignored. It is called by several
// workers concurrently, and for the same part several times if the product has many rows.
type Panels[T any] func(dst []T, k0, k1, n0, n1 int)

// FloatWork is the scratch memory in bytes of Float for this number of products of this shape. packed means that B is
// prepacked; otherwise a block of it is packed into the scratch memory.
func FloatWork(s Shape, batch, workers int, packed bool) int64 {
	return newFloatTiling(s, batch, workers, packed, false).floatWork(batch, workers)
}

// StoreWork is FloatWork of products with Store, whose B is not prepacked.
func StoreWork(s Shape, batch, workers int) int64 {
	return newFloatTiling(s, batch, workers, false, true).floatWork(batch, workers)
}

// A floatTiling is that of products whose B is prepacked or not, and whose tiles of C are in the scratch memory or not.
type floatTiling struct {
	tiling
	packed, stored bool
}

// maxStoredCols limits the columns of a tile in the scratch memory, so that it stays in the L2 cache.
const maxStoredCols = 256

func newFloatTiling(s Shape, batch, workers int, packed, stored bool) floatTiling {
	// The tile of a product with Store is in the scratch memory as well.
	cols := maxCols
	if stored {
		cols = maxStoredCols
	}
	return floatTiling{newTiling(s, max(s.M, 1), cols, colStep, batch, workers), packed, stored}
}

func (g floatTiling) floatWork(batch, workers int) int64 {
	return 4 * int64(min(workers, batch*g.tiles())) * int64(g.slot())
}

// slot is the number of elements of scratch memory per tile: a block of A, a block of B, and the tile of C.
func (g floatTiling) slot() int {
	k := min(g.K, depth)
	n := roundUp(min(g.rows, height), rowStep) * k
	if !g.packed {
		n += roundUp(g.cols, kernel.GemmPanel) * k
	}
	return roundUp(n, 16) + g.storedTile()
}

// storedTile is the number of elements of a tile of C in the scratch memory.
func (g floatTiling) storedTile() int {
	if !g.stored {
		return 0
	}
	return roundUp(g.rows*g.cols, 16)
}

// Float computes products of one shape, sharing their tiles over p. work is scratch memory of the size that FloatWork
// returns for them; it need not be cleared. Outputs must not overlap one another or the operands.
func Float(p Pool, s Shape, work []byte, products ...FloatProduct) {
	if s.M <= 0 || s.N <= 0 || len(products) == 0 {
		return
	}
	packed, stored := products[0].Packed != nil, products[0].Store != nil
	for i := range products {
		products[i].check(s, packed, stored)
	}
	g, scratch := newFloatTiling(s, len(products), p.Workers(), packed, stored), kernel.Words[float32](work)
	if want := g.floatWork(len(products), p.Workers()); int64(len(work)) < want {
		panic(fmt.Sprintf("gemm: scratch of %d bytes, want %d", len(work), want))
	}
	// All tiles of all products at once, so that small products of a batch fill the workers.
	slots, tiles := g.slot(), g.tiles()
	p.Slots(len(products)*tiles, func(task, slot int) {
		rows, cols := g.tile(task % tiles)
		own := scratch[slot*slots:][:slots]
		t := floatTile{&products[task/tiles], g.Shape, rows, cols, own[g.storedTile():], own[:g.storedTile()]}
		t.run()
	})
}

// check panics unless all operands are valid.
func (p *FloatProduct) check(s Shape, packed, stored bool) {
	if packed != (p.Packed != nil) || stored != (p.Store != nil) {
		panic("gemm: products of one call must all be packed or stored, or none")
	}
	if p.Accumulate && (p.Epilogue.alpha() != 1 || stored) {
		panic("gemm: a product with a factor, or that is stored, cannot be accumulated")
	}
	switch {
	case p.Int8 != nil:
		if p.Quantized == nil || p.Accumulate || stored {
			panic("gemm: rows of int8 require a quantized B, and C that is stored")
		}
	case p.Rows == nil:
		p.A.check("A", s.M, s.K)
	}
	if !stored {
		Rows(p.C, p.Stride).check("C", s.M, s.N)
	}
	p.Epilogue.check(s)
	switch {
	case packed:
		p.Packed.check(s)
	case p.Quantized != nil:
		checkSizes("quantized", p.Quantized.K, p.Quantized.N, s)
	case p.Panels == nil:
		p.B.check("B", s.K, s.N)
	}
}
