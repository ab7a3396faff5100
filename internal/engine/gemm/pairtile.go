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
			kernel.GemmPairs(t.result[from-t.cols.from:], t.stride, t.left, intRow(k), b, panel, t.rows.len(), cols.len(), k, ks.from > 0)
			for panel := range cols.blocks(kernel.GemmPanel) {
				t.addExcess(ks, intRow(k), panel)
			}
		}
		from = cols.to
	}
}

// pairRows prepares the block of A like rowsOfA, in the order of these columns. The sums of its rows are those of all columns.
func (t *intTile) pairRows(ks span, k int, cols span) {
	n, row := ks.len(), intRow(k)
	src, order := t.source(ks, row, 0), t.Packed.pairs.order[cols.from/pairGroup*t.Packed.orderSize():]
	kernel.PairRows(t.left, row, src.Data, src.Row, len(t.rowSums), n, t.ASigned, order[ks.from:][:roundUp(n, kernel.PairWindow)])
	t.pad(row, n, k)
	if cols.from != t.cols.from {
		return
	}
	t.eachZero(func(rows span, zero int32) {
		if t.ASigned {
			zero += 128 // its elements are converted to uint8
		}
		for i := rows.from; i < rows.to; i++ {
			t.zeros[i] = zero
		}
		if len(t.BZero) > 0 || !t.signed() {
			kernel.PairSums(t.left[rows.from*row:], row, n, zero, t.rowSums[rows.from:rows.to])
		}
	})
}

// addExcess adds the products with the excess of a panel.
func (t *intTile) addExcess(ks span, row int, panel span) {
	p := t.Packed.pairs
	at := p.of(t.Packed.panelAt(ks.from, panel.from))
	for e := at.from; e < at.to; e++ {
		a, b := t.left[int(p.quads[e])*kernel.GemmQuad:], p.excess[e*quadBytes:]
		kernel.GemmPairs(t.result[panel.from-t.cols.from:], t.stride, a, row, b, quadBytes, t.rows.len(), panel.len(), kernel.GemmQuad, true)
	}
}
