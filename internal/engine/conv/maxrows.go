package conv

import "github.com/mcompress/mcompress/internal/kernel"

// A maxRows pools channels of float32 row by row: windows of 2 or 3 columns that start 2 columns apart, as in most
// classifiers.
type maxRows struct {
	*window
	lo, hi int       // outputs of a row that the kernel computes
	at     [][]int64 // by row of the output: offsets of the covered rows of the input
}

// maxRowsOf returns nil if the window has another form, if vectors do not fit into a row, or if windows have so many
// rows that a maxBand is faster, which combines maxima.
func maxRowsOf(w *window) *maxRows {
	const vector, tall = 8, 9
	last := w.last()
	lo, hi := w.interior()
	// A stride drops most maxima of shifted bands. A channel of 112×112, 3×3: 12.0 → 3.4 µs; 32×32, 2×2: 1.6 → 0.5.
	if w.stride[last] != 2 || w.dilation[last] != 1 || w.kernel[last]&^1 != 2 || hi-lo < vector ||
		volume(w.kernel[:last]) > tall {
		return nil
	}
	p := &maxRows{window: w, lo: lo, hi: hi}
	// The kernel gets the maximum of the columns before those it loads, which is -Inf here: so it computes the first
	// window, too, whose first column is padding.
	if w.kernel[last] == 3 && w.begin[last] == 1 {
		p.lo = 0
	}
	var rows []coveredRow
	all := make([]int64, 0, w.outLen()/w.out[last]*volume(w.kernel[:last]))
	for o := range w.outLen() / w.out[last] {
		rows = w.rows(rows, o)
		first := len(all)
		for _, r := range rows {
			all = append(all, int64(r.off))
		}
		p.at = append(p.at, all[first:])
	}
	return p
}

func (p *maxRows) channel(y, x []float32) {
	last := p.last()
	taps := p.kernel[last]
	from := p.lo*2 - p.begin[last] + taps - 2 // the last two columns of the first window
	for o, at := range p.at {
		row := part(y, o, p.out[last])
		if len(at) == 0 {
			fill(row, lowest[float32]())
			continue
		}
		kernel.MaxWindows(row[p.lo:p.hi], x[from:], at, taps, maxColumns(x, at, max(from-1, 0), from))
		p.edge(row, x, at, 0, p.lo)
		p.edge(row, x, at, p.hi, len(row))
	}
}

// edge computes windows that include padding.
func (p *maxRows) edge(row, x []float32, at []int64, from, to int) {
	for i := from; i < to; i++ {
		lo, hi := p.inside(p.last(), i)
		if lo == hi {
			row[i] = lowest[float32]()
			continue
		}
		first := 2*i - p.begin[p.last()]
		row[i] = maxColumns(x, at, first+lo, first+hi)
	}
}

// maxColumns is the maximum of columns of these rows, -Inf of none.
func maxColumns(x []float32, at []int64, from, to int) float32 {
	top := leastOf[float32]()
	for _, a := range at {
		for c := from; c < to; c++ {
			top = max(top, x[int(a)+c])
		}
	}
	return top
}
