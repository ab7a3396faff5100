package gemm

import (
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A pairing is the form of a PackedInt that GemmPairs multiplies, whose pairs of rows satisfy PairFits in every column.
// Weights of the same sign may be too large together; they are given other partners within their window of rows. As few
// pairs suit all columns, each group of columns has its own order of rows. Weights that still do not fit are halved,
// and their other halves are excess, which is multiplied separately. FBGEMM (Khudia et al., arXiv:2101.05615) splits
// such outliers too.
type pairing struct {
	order  []byte  // of the rows of each group of columns, in whole windows: their indices in their window
	panels []int32 // that excess is added to, in ascending order, counted over all blocks of rows
	quads  []int32 // of these panels
	excess []byte  // a quad of each
}

const (
	pairGroup = 64 // columns of a group: with more of them fewer pairs fit, with fewer A is reordered more often
	quadBytes = kernel.GemmQuad * kernel.GemmPanel

	// maxExcess is the largest fraction of excess quads: with many of them, multiplying int16 is faster.
	maxExcess = 1.0 / 32
)

// pair reorders the elements. It returns false if too many do not fit; the elements are then to be packed again.
func (m *PackedInt) pair(p Pool) bool {
	groups := (m.n + pairGroup - 1) / pairGroup
	order, excess := make([]byte, groups*m.orderSize()), make([][]excessQuad, groups)
	p.For(groups, func(g int) {
		w := &pairWindow{}
		for k := 0; k < m.k; k += kernel.PairWindow {
			w.load(m, k, g*pairGroup)
			w.order = order[g*m.orderSize()+k:][:kernel.PairWindow]
			w.arrange()
			excess[g] = w.apply(excess[g])
		}
	})
	all := slices.Concat(excess...)
	if float64(len(all)*quadBytes) > maxExcess*float64(len(m.data)) {
		return false
	}
	m.pairs = newPairing(order, all)
	return true
}

// orderSize is the number of rows of whole windows.
func (m *PackedInt) orderSize() int { return roundUp(m.k, kernel.PairWindow) }

// An excessQuad is the halves of weights that do not fit.
type excessQuad struct {
	panel, quad int32
	weights     [quadBytes]byte // int8
}

func newPairing(order []byte, excess []excessQuad) *pairing {
	// Tiles look up a panel by bisection. Quads of one panel may be in any order: sums of integers are exact.
	slices.SortFunc(excess, func(a, b excessQuad) int { return int(a.panel - b.panel) })
	made := &pairing{order: order}
	for i := range excess {
		e := &excess[i]
		made.panels, made.quads = append(made.panels, e.panel), append(made.quads, e.quad)
		made.excess = append(made.excess, e.weights[:]...)
	}
	return made
}

// of is the range of the excess of a panel.
func (p *pairing) of(panel int) span {
	from, _ := slices.BinarySearch(p.panels, int32(panel))
	to, _ := slices.BinarySearch(p.panels, int32(panel)+1)
	return span{from, to}
}

func (p *pairing) bytes() int64 { return int64(len(p.order) + 8*len(p.panels) + len(p.excess)) }
