package gemm

import (
	"encoding/binary"
	"math/bits"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A pairWindow is a window of rows of a group of columns.
type pairWindow struct {
	quads  [][]byte // of the packed matrix: those of a panel, then of the next one
	panel  int32    // the first one
	first  int32    // quad of the panels
	rows   int
	order  []byte                              // of the rows, and of those after the last one
	column [pairGroup * kernel.PairWindow]byte // int8, those of a column adjacent
	misfit [kernel.PairWindow]uint32           // of each row: those with which it does not fit in some column
}

// load reads the window at (k, n) of m.
func (w *pairWindow) load(m *PackedInt, k, n int) {
	ks := around(k, intDepth, m.k)
	data, panel := m.block(ks, n)
	w.panel, w.first = int32(m.panelAt(ks.from, n)), int32((k-ks.from)/kernel.GemmQuad)
	w.quads, w.rows = w.quads[:0], min(kernel.PairWindow, m.k-k)
	high := w.high() * kernel.GemmQuad
	for p := range (min(pairGroup, m.n-n) + kernel.GemmPanel - 1) / kernel.GemmPanel {
		for q := 0; q < high; q += kernel.GemmQuad {
			quad := data[p*panel+(k-ks.from+q)*kernel.GemmPanel:][:quadBytes:quadBytes]
			w.quads = append(w.quads, quad)
			for c := range kernel.GemmPanel {
				copy(w.column[(p*kernel.GemmPanel+c)*kernel.PairWindow+q:][:kernel.GemmQuad], quad[c*kernel.GemmQuad:])
			}
		}
	}
}

// high is the number of quads of a panel.
func (w *pairWindow) high() int { return (w.rows + kernel.GemmQuad - 1) / kernel.GemmQuad }

// arrange chooses the order.
func (w *pairWindow) arrange() {
	for i := range w.order {
		w.order[i] = byte(i)
	}
	w.compare()
	w.match()
	w.exchange()
}

// compare sets misfit. One weight of a pair that does not fit is large.
func (w *pairWindow) compare() {
	w.misfit = [kernel.PairWindow]uint32{}
	// All 64 columns share one order, as rows of A are shuffled in the same way.
	for c := range len(w.quads) / w.high() * kernel.GemmPanel {
		column := (*[kernel.PairWindow]byte)(w.column[c*kernel.PairWindow:])
		for at := 0; at < w.rows; at += 8 {
			eight := binary.LittleEndian.Uint64(column[at:])
			for large := (eight ^ eight<<1) & signBits; large != 0; large &= large - 1 {
				i := at + bits.TrailingZeros64(large)/8
				w.misfit[i] |= tooLarge(column, int8(column[i])) &^ (1 << i)
			}
		}
	}
	// If a does not fit with b, b does not fit with a: the sets found from large weights are made symmetric.
	for i, others := range w.misfit {
		for ; others != 0; others &= others - 1 {
			w.misfit[bits.TrailingZeros32(others)] |= 1 << i
		}
	}
}

// signBits are the sign bits of eight int8. One that differs from the next bit means that the element is above 63 or
// below -64.
const signBits = 0x8080808080808080

// tooLarge is the set of elements of a column that do not fit with x: those of its sign above 128-x, or below -128-x.
func tooLarge(column *[kernel.PairWindow]byte, x int8) (set uint32) {
	// Seven bits of a byte plus the limit carry into its sign bit exactly if the element is too large; for a negative
	// x the elements are inverted first. Those of the other sign are masked by their own sign bits.
	flip, limit := uint64(0), uint64(uint8(x)-1)
	if x < 0 {
		flip, limit = ^flip, uint64(uint8(-x))
	}
	const each = signBits >> 7
	for at := 0; at < len(column); at += 8 {
		y := binary.LittleEndian.Uint64(column[at:]) ^ flip
		above := (y&^signBits + limit*each) &^ y & signBits
		// The multiplication gathers the eight sign bits in the highest byte.
		set |= uint32(above>>7*0x0102040810204080>>56) << at
	}
	return set
}

// match pairs rows that fit, those with the fewest possible partners first; the others among each other.
func (w *pairWindow) match() {
	free, at := uint32(1<<w.rows-1), 0
	// Rows with the fewest partners first, as those with many find one later, too: greedy, and exchange corrects what
	// it misses.
	for at+1 < w.rows {
		a := w.fewest(free, free)
		free &^= 1 << a
		partners := free &^ w.misfit[a]
		// Some pair has to be split then; a later row may still fit another one (exchange).
		if partners == 0 {
			partners = free
		}
		b := w.fewest(partners, free)
		free &^= 1 << b
		w.order[at], w.order[at+1] = byte(a), byte(b)
		at += 2
	}
	if free != 0 {
		w.order[at] = byte(bits.TrailingZeros32(free))
	}
}

// fewest is the row of a set with the fewest possible partners among the free ones.
func (w *pairWindow) fewest(set, free uint32) (row int) {
	least := kernel.PairWindow + 1
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros32(set)
		if n := bits.OnesCount32(free &^ w.misfit[i]); n < least {
			row, least = i, n
		}
	}
	return row
}

func (w *pairWindow) misfits(a, b byte) bool { return w.misfit[a]>>b&1 != 0 }

// exchange exchanges the partners of pairs that do not fit with those of others, where both new pairs fit.
func (w *pairWindow) exchange() {
	whole := w.order[:w.rows&^1]
	for i := 0; i < len(whole); i += 2 {
		for j := 0; j < len(whole) && w.misfits(whole[i], whole[i+1]); j++ {
			if j/2 != i/2 && !w.misfits(whole[i], whole[j]) && !w.misfits(whole[i+1], whole[j^1]) {
				whole[i+1], whole[j] = whole[j], whole[i+1]
			}
		}
	}
}

// apply reorders the elements of the packed matrix, and appends the excess.
func (w *pairWindow) apply(excess []excessQuad) []excessQuad {
	const size = kernel.PairWindow
	kernel.PairRows(w.column[:], size, w.column[:], size, pairGroup, size, false, w.order)
	for at, quad := range w.quads {
		column, row := at/w.high()*kernel.GemmPanel, at%w.high()*kernel.GemmQuad
		for c := range kernel.GemmPanel {
			copy(quad[c*kernel.GemmQuad:][:kernel.GemmQuad], w.column[(column+c)*size+row:])
		}
		if o := w.order[row:]; w.misfits(o[0], o[1]) || w.misfits(o[2], o[3]) {
			e := excessQuad{panel: w.panel + int32(at/w.high()), quad: w.first + int32(at%w.high())}
			if e.split(quad) {
				excess = append(excess, e)
			}
		}
	}
	return excess
}

// split halves the weights of a quad that do not fit, and reports whether there are any.
func (e *excessQuad) split(quad []byte) (any bool) {
	for i := 0; i < quadBytes; i += 2 {
		if !kernel.PairFits(int8(quad[i]), int8(quad[i+1])) {
			halve(quad[i:i+2], e.weights[i:])
			any = true
		}
	}
	return any
}

// halve replaces the weights of a pair by halves, and writes the other halves to rest.
func halve(pair, rest []byte) {
	for i, x := range pair {
		// Both halves fit: they are at most half as large. The other halves are multiplied separately.
		half := byte(int8(x) >> 1)
		pair[i], rest[i] = half, x-half
	}
}
