package gemm

import "github.com/mcompress/mcompress/internal/kernel"

// multiplyPairs computes the columns of one group of the pairing after the other.
func (t *intTile) multiplyPairs() {
	clear(t.rowSums)
	for from := t.cols.from; from < t.cols.to; {
		cols := span{from, around(from, pairGroup, t.cols.to).to}
		for ks := range (span{0, t.depth}).blocks(intDepth) {
			k := roundUp(ks.len(), kernel.GemmQuad)
			t.pairRows(ks, k, cols)
			b, panel := t.Packed.block(ks, from)
			// Sums begin with A's zero point if it is the same for all rows: one pass over C less afterwards.
			add := ks.from > 0 || t.begin(cols)
			kernel.GemmPairs(t.result[from-t.cols.from:], t.stride, t.left, intRow(k), b, panel, t.rows.len(),
				cols.len(), k, add)
			for panel := range cols.blocks(kernel.GemmPanel) {
				t.addExcess(t.result[panel.from-t.cols.from:], t.stride, ks, panel)
			}
		}
		from = cols.to
	}
}

// begin sets the sums to minus the contribution of A's zero point if all rows have the same one, and reports whether it
// did.
func (t *intTile) begin(cols span) bool {
	if len(t.AZero) > 1 || t.lifted(zeroAt(t.AZero, 0)) == 0 {
		return false
	}
	var first [pairGroup]int32
	t.repeat(t.result[cols.from-t.cols.from:], t.stride, t.first(&first, cols))
	return true
}

// first sets the sums that all rows start with: minus the contribution of A's zero point, of which there is at most
// one.
func (t *intTile) first(sums *[pairGroup]int32, cols span) []int32 {
	row := sums[:cols.len()]
	kernel.LessTimes(row, t.colSums[cols.from-t.cols.from:][:len(row)], 0, t.lifted(zeroAt(t.AZero, 0)))
	return row
}

// repeat copies a row to all rows of c.
func (t *intTile) repeat(c []int32, stride int, row []int32) {
	for i := range t.rowSums {
		copy(c[i*stride:][:len(row)], row)
	}
}

// requantizesPairs reports whether nothing follows the product of a single block of rows of B but the requantization.
func (t *intTile) requantizesPairs() bool {
	return t.Quantized.Data != nil && t.depth <= intDepth && len(t.AZero) <= 1 && len(t.BZero) == 0 && t.signed()
}

// requantizePairs computes the quantized result, panel by panel. Only sums of panels with excess are stored.
func (t *intTile) requantizePairs() {
	ks, k := span{0, t.depth}, roundUp(t.depth, kernel.GemmQuad)
	for from := t.cols.from; from < t.cols.to; {
		cols := span{from, around(from, pairGroup, t.cols.to).to}
		t.pairRows(ks, k, cols)
		for panel := range cols.blocks(kernel.GemmPanel) {
			t.requantizePanel(ks, k, panel)
		}
		from = cols.to
	}
}

func (t *intTile) requantizePanel(ks span, k int, cols span) {
	var sums [pairGroup]int32
	first, stride := t.first(&sums, cols), 0
	if t.excess(ks, cols).len() > 0 {
		stride = len(first)
		t.repeat(t.result, stride, first)
		t.addExcess(t.result, stride, ks, cols)
		first = t.result
	}
	b, panel := t.Packed.block(ks, cols.from)
	y, q := t.Quantized.from(t.rows.from, cols.from), t.Requantization.Part(cols.from, cols.to)
	kernel.RequantizePairs(y.Data, y.Row, q, first, stride, t.result, t.left, intRow(k), b, panel, t.rows.len(), k)
}

// lifted is a zero point of A as that of its elements converted to uint8.
func (t *intTile) lifted(zero int32) int32 {
	if t.ASigned {
		return zero + 128
	}
	return zero
}

// pairRows prepares the block of A like rowsOfA, in the order of these columns. The sums of its rows are those of all
// columns.
func (t *intTile) pairRows(ks span, k int, cols span) {
	n, row := ks.len(), intRow(k)
	src, order := t.source(ks, row, 0), t.Packed.pairs.order[cols.from/pairGroup*t.Packed.orderSize():]
	kernel.PairRows(t.left, row, src.Data, src.Row, len(t.rowSums), n, t.ASigned,
		order[ks.from:][:roundUp(n, kernel.PairWindow)])
	t.pad(row, n, k)
	// Zero points and sums of rows are those of the whole block, whatever the order: once is enough.
	if cols.from != t.cols.from {
		return
	}
	t.eachZero(func(rows span, zero int32) {
		zero = t.lifted(zero)
		for i := rows.from; i < rows.to; i++ {
			t.zeros[i] = 0
			if len(t.AZero) > 1 {
				t.zeros[i] = zero
			}
		}
		if len(t.BZero) > 0 || !t.signed() {
			kernel.PairSums(t.left[rows.from*row:], row, n, zero, t.rowSums[rows.from:rows.to])
		}
	})
}

// excess is the range of the excess of a panel.
func (t *intTile) excess(ks, panel span) span {
	return t.Packed.pairs.of(t.Packed.panelAt(ks.from, panel.from))
}

// addExcess adds the products with the excess of a panel to c.
func (t *intTile) addExcess(c []int32, stride int, ks, panel span) {
	p, at, row := t.Packed.pairs, t.excess(ks, panel), intRow(roundUp(ks.len(), kernel.GemmQuad))
	for e := at.from; e < at.to; e++ {
		a, b := t.left[int(p.quads[e])*kernel.GemmQuad:], p.excess[e*quadBytes:]
		kernel.GemmPairs(c, stride, a, row, b, quadBytes, t.rows.len(), panel.len(), kernel.GemmQuad, true)
	}
}
