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
	order  []byte
	column [pairGroup][kernel.PairWindow]byte // int8
	misfit [kernel.PairWindow]uint32          // of each row: those with which it does not fit in some column
}

// windows ranges over the windows of a group; order is that of all groups.
func (m *PackedInt) windows(group int, order []byte) func(yield func(*pairWindow) bool) {
	return func(yield func(*pairWindow) bool) {
		w := &pairWindow{}
		for k := 0; k < m.k; k += kernel.PairWindow {
			w.load(m, k, group*pairGroup)
			w.order = order[group*m.k+k:][:min(kernel.PairWindow, m.k-k)]
			if !yield(w) {
				return
			}
		}
	}
}

// load reads the window at (k, n) of m.
func (w *pairWindow) load(m *PackedInt, k, n int) {
	ks := around(k, intDepth, m.k)
	data, panel := m.block(ks, n)
	w.panel, w.first = int32(m.panelAt(ks.from, n)), int32((k-ks.from)/kernel.GemmQuad)
	w.quads = w.quads[:0]
	high := roundUp(min(kernel.PairWindow, m.k-k), kernel.GemmQuad)
	for p := range (min(pairGroup, m.n-n) + kernel.GemmPanel - 1) / kernel.GemmPanel {
		for q := 0; q < high; q += kernel.GemmQuad {
			quad := data[p*panel+(k-ks.from+q)*kernel.GemmPanel:][:quadBytes:quadBytes]
			w.quads = append(w.quads, quad)
			for c := range kernel.GemmPanel {
				binary.NativeEndian.PutUint32(w.column[p*kernel.GemmPanel+c][q:], binary.NativeEndian.Uint32(quad[c*kernel.GemmQuad:]))
			}
		}
	}
}

// high is the number of quads of a panel.
func (w *pairWindow) high() int { return (len(w.order) + kernel.GemmQuad - 1) / kernel.GemmQuad }

// arrange chooses the order, and returns the number of quads that do not fit in it.
func (w *pairWindow) arrange() (misfits int) {
	w.compare()
	w.match()
	w.exchange()
	for at := range w.quads {
		if !w.fits(at/w.high()*kernel.GemmPanel, at%w.high()*kernel.GemmQuad) {
			misfits++
		}
	}
	return misfits
}

// compare sets misfit. One weight of a pair that does not fit is large.
func (w *pairWindow) compare() {
	w.misfit = [kernel.PairWindow]uint32{}
	for c := range len(w.quads) / w.high() * kernel.GemmPanel {
		column := &w.column[c]
		for at := 0; at < len(w.order); at += 8 {
			eight := binary.LittleEndian.Uint64(column[at:])
			for large := (eight ^ eight<<1) & signBits; large != 0; large &= large - 1 {
				i := at + bits.TrailingZeros64(large)/8
				w.misfit[i] |= tooLarge(column, int8(column[i])) &^ (1 << i)
			}
		}
	}
	for i, others := range w.misfit {
		for ; others != 0; others &= others - 1 {
			w.misfit[bits.TrailingZeros32(others)] |= 1 << i
		}
	}
}

// signBits are the sign bits of eight int8. One that differs from the next bit means that the element is above 63 or below -64.
const signBits = 0x8080808080808080

// tooLarge is the set of elements of a column that do not fit with x: those of its sign above 128-x, or below -128-x.
func tooLarge(column *[kernel.PairWindow]byte, x int8) (set uint32) {
	flip, limit := uint64(0), uint64(uint8(x)-1)
	if x < 0 {
		flip, limit = ^flip, uint64(uint8(-x))
	}
	const each = signBits >> 7
	for at := 0; at < len(column); at += 8 {
		y := binary.LittleEndian.Uint64(column[at:]) ^ flip
		above := (y&^signBits + limit*each) &^ y & signBits
		set |= uint32(above>>7*0x0102040810204080>>56) << at
	}
	return set
}

// match pairs rows that fit, those with the fewest possible partners first; the others among each other.
func (w *pairWindow) match() {
	free, at := uint32(1<<len(w.order)-1), 0
	for at+1 < len(w.order) {
		a := w.fewest(free, free)
		free &^= 1 << a
		partners := free &^ w.misfit[a]
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
	whole := w.order[:len(w.order)&^1]
	for i := 0; i < len(whole); i += 2 {
		for j := 0; j < len(whole) && w.misfits(whole[i], whole[i+1]); j++ {
			if j/2 != i/2 && !w.misfits(whole[i], whole[j]) && !w.misfits(whole[i+1], whole[j^1]) {
				whole[i+1], whole[j] = whole[j], whole[i+1]
			}
		}
	}
}

// fits reports whether the pairs of a quad fit in all columns of a panel.
func (w *pairWindow) fits(column, from int) bool {
	for i := from; i+1 < min(from+kernel.GemmQuad, len(w.order)); i += 2 {
		a, b := w.order[i], w.order[i+1]
		if !w.misfits(a, b) {
			continue
		}
		for _, x := range w.column[column:][:kernel.GemmPanel] {
			if !kernel.PairFits(int8(x[a]), int8(x[b])) {
				return false
			}
		}
	}
	return true
}

// apply reorders the elements of the packed matrix, and appends the excess.
func (w *pairWindow) apply(excess []excessQuad) []excessQuad {
	for at, quad := range w.quads {
		from := at % w.high() * kernel.GemmQuad
		e := excessQuad{panel: w.panel + int32(at/w.high()), quad: w.first + int32(at%w.high())}
		split := false
		for c := range kernel.GemmPanel {
			to, column := quad[c*kernel.GemmQuad:][:kernel.GemmQuad], &w.column[at/w.high()*kernel.GemmPanel+c]
			for i, row := range w.order[from:min(from+kernel.GemmQuad, len(w.order))] {
				to[i] = column[row%kernel.PairWindow]
			}
			for i := 0; i < len(to); i += 2 {
				if !kernel.PairFits(int8(to[i]), int8(to[i+1])) {
					halve(to[i:i+2], e.weights[c*kernel.GemmQuad+i:])
					split = true
				}
			}
		}
		if split {
			excess = append(excess, e)
		}
	}
	return excess
}

// halve replaces the weights of a pair by halves, and writes the other halves to rest.
func halve(pair, rest []byte) {
	for i, x := range pair {
		half := byte(int8(x) >> 1)
		pair[i], rest[i] = half, x-half
	}
}
