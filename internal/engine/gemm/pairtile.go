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
			add := ks.from > 0 || t.begin(cols)
			kernel.GemmPairs(t.result[from-t.cols.from:], t.stride, t.left, intRow(k), b, panel, t.rows.len(), cols.len(), k, add)
			for panel := range cols.blocks(kernel.GemmPanel) {
				t.addExcess(ks, intRow(k), panel)
			}
		}
		from = cols.to
	}
}

// begin sets the sums to minus the contribution of A's zero point if all rows have the same one, and reports whether it did.
func (t *intTile) begin(cols span) bool {
	zero := t.lifted(zeroAt(t.AZero, 0))
	if len(t.AZero) > 1 || zero == 0 {
		return false
	}
	var first [pairGroup]int32
	at, row := cols.from-t.cols.from, first[:cols.len()]
	kernel.LessTimes(row, t.colSums[at:][:len(row)], 0, zero)
	for i := range t.rowSums {
		copy(t.result[i*t.stride+at:][:len(row)], row)
	}
	return true
}

// lifted is a zero point of A as that of its elements converted to uint8.
func (t *intTile) lifted(zero int32) int32 {
	if t.ASigned {
		return zero + 128
	}
	return zero
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

// addExcess adds the products with the excess of a panel.
func (t *intTile) addExcess(ks span, row int, panel span) {
	p := t.Packed.pairs
	at := p.of(t.Packed.panelAt(ks.from, panel.from))
	for e := at.from; e < at.to; e++ {
		a, b := t.left[int(p.quads[e])*kernel.GemmQuad:], p.excess[e*quadBytes:]
		kernel.GemmPairs(t.result[panel.from-t.cols.from:], t.stride, a, row, b, quadBytes, t.rows.len(), panel.len(), kernel.GemmQuad, true)
	}
}
