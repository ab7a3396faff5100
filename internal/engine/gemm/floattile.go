package gemm

import "github.com/mcompress/mcompress/internal/kernel"

// floatTile is one tile of a product during its computation.
type floatTile struct {
	*FloatProduct
	shape      Shape
	rows, cols span
	work       []float32
	sums       []float32 // of the tile, if it is stored
}

// run computes blocks of depth, and within them of height: a block of B is used by all rows before the next one is
// packed.
func (t *floatTile) run() {
	if t.isRow() {
		t.row()
		return
	}
	if t.isQuantizedRow() {
		t.quantizedRow()
		return
	}
	if t.Int8 != nil {
		t.int8Rows()
		return
	}
	sums, stride := t.result()
	// K is never split among workers: sums of a block are rounded and added in the order of blocks, so that a row is
	// bit-identical alone, among others, and at any number of workers.
	for ks := range (span{0, t.shape.K}).blocks(depth) {
		right := t.right(ks)
		for rows := range t.rows.blocks(height) {
			left := t.left(rows, ks)
			c := sums[(rows.from-t.rows.from)*stride:]
			kernel.GemmFloat(c, stride, left, right, rows.len(), t.cols.len(), ks.len(), t.Accumulate || ks.from > 0)
			if ks.to == t.shape.K {
				t.finish(c, stride, rows)
			}
		}
	}
}

// result is the memory of the tile's sums, from its first element on.
func (t *floatTile) result() (sums []float32, stride int) {
	if t.Store != nil {
		return t.sums, t.cols.len()
	}
	return t.C[t.rows.from*t.Stride+t.cols.from:], t.Stride
}

// finish applies the epilogue to rows of the tile, and stores them.
func (t *floatTile) finish(c []float32, stride int, rows span) {
	t.Epilogue.apply(c, stride, rows, t.cols)
	if t.Store == nil {
		return
	}
	for i := rows.from; i < rows.to; i++ {
		t.Store(c[(i-rows.from)*stride:][:t.cols.len()], i, t.cols.from)
	}
}

// single reports whether this is a row in memory, whose result is in memory.
func (t *floatTile) single() bool {
	return t.shape.M == 1 && t.shape.K > 0 && t.Int8 == nil && t.Rows == nil && t.Store == nil
}

// isRow reports whether this is a single row times a matrix that would be packed for it only.
func (t *floatTile) isRow() bool {
	return t.single() && t.Packed == nil && t.Quantized == nil && t.Panels == nil && t.B.Col == 1
}

// isQuantizedRow reports whether this is a single row times a matrix that would be dequantized for it only.
func (t *floatTile) isQuantizedRow() bool { return t.single() && t.Quantized != nil && t.A.Col == 1 }

// quantizedRow computes the sums of two panels over all of K, so that each is read from its start to its end.
func (t *floatTile) quantizedRow() {
	// Two panels at once, as a sum waits for the one before it.
	for cols := range t.cols.blocks(2 * kernel.GemmPanel) {
		var all [2 * kernel.GemmPanel]float32
		c, sums := t.C[cols.from:cols.to], all[:roundUp(cols.len(), kernel.GemmPanel)]
		for ks := range (span{0, t.shape.K}).blocks(depth) {
			clear(sums)
			t.Quantized.Row(sums, t.A.from(0, ks.from).Data[:ks.len()], cols.from/kernel.GemmPanel, ks.from, ks.to)
			if t.Accumulate || ks.from > 0 {
				kernel.Add(c, c, sums[:len(c)])
			} else {
				copy(c, sums)
			}
		}
	}
	t.Epilogue.apply(t.C[t.cols.from:], t.Stride, t.rows, t.cols)
}

// row computes the sums of a block in the scratch memory, in place of packed B.
func (t *floatTile) row() {
	c, sums := t.C[t.cols.from:t.cols.to], t.work[:t.cols.len()]
	for ks := range (span{0, t.shape.K}).blocks(depth) {
		a, b := t.A.from(0, ks.from), t.B.from(ks.from, t.cols.from)
		clear(sums)
		// Packing B for one row would read and write it once more than the product does.
		kernel.GemvFloat(sums, a.Data, a.Col, b.Data, b.Row, ks.len())
		if t.Accumulate || ks.from > 0 {
			kernel.Add(sums, c, sums)
		}
		copy(c, sums)
	}
	t.Epilogue.apply(c, t.Stride, t.rows, t.cols)
}

// int8Rows multiplies two panels by all rows, while they are in the L1 cache.
func (t *floatTile) int8Rows() {
	for cols := range t.cols.blocks(2 * kernel.GemmPanel) {
		var all [2 * kernel.GemmPanel]float32
		sums := all[:roundUp(cols.len(), kernel.GemmPanel)]
		for i := t.rows.from; i < t.rows.to; i++ {
			t.Quantized.Int8Row(sums, t.Int8, i, cols.from/kernel.GemmPanel)
			copy(t.C[i*t.Stride+cols.from:i*t.Stride+cols.to], sums)
		}
	}
	t.Epilogue.apply(t.C[t.rows.from*t.Stride+t.cols.from:], t.Stride, t.rows, t.cols)
}

// left is a block of A, at the start of the scratch memory if Rows writes it, or packed into strips there if that pays
// off.
func (t *floatTile) left(rows, ks span) kernel.GemmA {
	high := kernel.GemmRows()
	if t.Rows != nil {
		t.Rows(t.work, rows.from, rows.to, ks.from, ks.to)
		return kernel.GemmA{Data: t.work, Strip: high * ks.len(), Row: ks.len(), K: 1}
	}
	a := t.A.from(rows.from, ks.from)
	// Packing costs as much as it gains while rows are contiguous: 128×768×3072 in tiles of 96 columns has 79 GFLOP/s
	// packed, 87 not. Six rows in the same sets of the L1 cache reduced 1024×1024×1024 from 88 to 70.
	if !t.packsLeft() {
		return kernel.GemmA{Data: a.Data, Strip: high * a.Row, Row: a.Row, K: a.Col}
	}
	kernel.PackStrips(t.work, a.Data, a.Row, a.Col, rows.len(), ks.len())
	return kernel.GemmA{Data: t.work, Strip: high * ks.len(), Row: 1, K: high}
}

// packsLeft reports whether enough panels read a block of A with an unfavorable layout: elements not contiguous in a
// row, or rows that map to the same lines of the L1 cache, which slows products down so little that only wide tiles
// gain more than packing costs.
func (t *floatTile) packsLeft() bool {
	const scattered, aliased, alias = 3, 32, 1024
	panels := t.cols.len() / kernel.GemmPanel
	return panels >= scattered && t.A.Col != 1 || panels >= aliased && t.A.Row%alias == 0
}

// right is a block of B in panels, at the end of the scratch memory unless prepacked.
func (t *floatTile) right(ks span) kernel.GemmB {
	if t.Packed != nil {
		return t.Packed.block(ks, t.cols.from)
	}
	size := kernel.GemmPanel * ks.len()
	// At the end, as A is packed at the start, in other sizes for each block.
	dst := t.work[len(t.work)-roundUp(t.cols.len(), kernel.GemmPanel)*ks.len():]
	switch {
	case t.Quantized != nil:
		// Dequantized for this tile, as the weight as a whole would be read from memory.
		for cols := range t.cols.blocks(kernel.GemmPanel) {
			t.Quantized.Decode(dst[(cols.from-t.cols.from)*ks.len():][:size], cols.from/kernel.GemmPanel, ks.from,
				ks.to)
		}
	case t.Panels != nil:
		t.fill(dst, ks)
	default:
		b := t.B.from(ks.from, t.cols.from)
		kernel.PackPanels(dst, size, b.Data, b.Row, b.Col, ks.len(), t.cols.len())
	}
	return kernel.GemmB{Data: dst, Panel: size, K: kernel.GemmPanel}
}

// fill calls Panels. The missing columns of the last panel are cleared, since they are multiplied too, and NaN or
// denormals would be slow.
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
