package conv

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// A Place is a place of the kernel that holds the largest element of a window.
type Place interface{ uint8 | uint16 | int32 }

// Taken is how many places the kernel has.
func (v Windows) Taken() int { return v.w.taken() }

// MaxPlaces pools as MaxPool does and writes for each window which place of the kernel holds the first of its largest
// elements. Of a window that lies in the padding it is place 0.
func MaxPlaces[T float, P Place](v Windows, p *op.Pool, y []T, places []P, x []T) {
	if len(y) == 0 {
		return
	}
	w, pool := v.w, MaxPlane[T, P](v)
	w.eachChannel(p, len(y)/w.outLen(), func(ch int) {
		to := places
		if to != nil {
			to = part(places, ch, w.outLen())
		}
		pool(part(y, ch, w.outLen()), to, part(x, ch, w.inLen()))
	})
}

// MaxPlane returns what MaxPlaces does to one channel, for any number of callers at once.
func MaxPlane[T float, P Place](v Windows) func(y []T, places []P, x []T) {
	w, a := v.w, arithmeticOf[T]()
	rows := w.allRows()
	f := finder{window: w, rows: rows, taps: make([][]candidate, len(rows)), half: w.halves()}
	f.lo, f.hi = w.interior()
	for o := range rows {
		f.taps[o] = w.candidates(rows[o])
	}
	return func(y []T, places []P, x []T) {
		if places == nil {
			maxOver(w, a, rows, y, x)
		} else if !inOrderOver(&f, places, y, x) {
			maxOver(w, a, rows, y, x)
			findPlaces(&f, places, y, x)
		}
	}
}

// A finder knows where the windows lie.
type finder struct {
	*window
	rows   [][]covered   // by row of the output
	taps   [][]candidate // by row of the output
	lo, hi int           // outputs along the last axis whose windows lie inside of the input
	half   bool
}

// A candidate is a place of the kernel, and how far it is from where output 0 of the row begins.
type candidate struct{ off, tap int }

// findPlaces finds those of one channel. Numbers that are none equal no other, and the lowest may stand for lower ones.
func findPlaces[T float, P Place](f *finder, places []P, y, x []T) {
	last := f.last()
	for o, rows := range f.rows {
		row, to := part(y, o, f.out[last]), part(places, o, f.out[last])
		if f.lo < f.hi {
			findRow(to[f.lo:f.hi], row[f.lo:f.hi], x, f.taps[o], f.lo*f.stride[last], f.stride[last])
		}
		for i, v := range row {
			if i < f.lo || i >= f.hi || v != v || v == lowest[T]() {
				_, at := firstPlace(f.window, x, rows, i)
				to[i] = P(at)
			}
		}
	}
}

// findRow finds the first place that holds each of y, for windows that lie stride apart. It has no branches to guess.
func findRow[T float, P Place](places []P, y, x []T, taps []candidate, from, stride int) {
	places = places[:len(y)]
	for i, v := range y {
		at := 0
		for _, t := range taps {
			if x[from+t.off] == v {
				at = t.tap
			}
		}
		places[i] = P(at)
		from += stride
	}
}

// interior are the outputs along the last axis for which all places of the kernel lie inside of the input.
func (w *window) interior() (lo, hi int) {
	lo, hi = 0, w.out[w.last()]
	for k := range w.kernel[w.last()] {
		from, to, _ := w.taps(w.last(), k)
		lo, hi = max(lo, from), min(hi, to)
	}
	return lo, hi
}

// candidates are all places on these rows, the last one first.
func (w *window) candidates(rows []covered) []candidate {
	var to []candidate
	last := w.last()
	for _, r := range slices.Backward(rows) {
		for k := w.kernel[last] - 1; k >= 0; k-- {
			to = append(to, candidate{r.off - w.begin[last] + k*w.dilation[last], r.tap*w.kernel[last] + k})
		}
	}
	return to
}

// firstPlace is the largest element of the window at o of these rows, and the place of the first such. A NaN is larger.
func firstPlace[T float](w *window, x []T, rows []covered, o int) (T, int) {
	last := w.last()
	lo, hi := w.inside(last, o)
	first := o*w.stride[last] - w.begin[last]
	top, at := lowest[T](), -1
	for _, r := range rows {
		for k := lo; k < hi; k++ {
			if v := x[r.off+first+k*w.dilation[last]]; at < 0 || v > top || v != v && top == top {
				top, at = v, r.tap*w.kernel[last]+k
			}
		}
	}
	return top, max(at, 0)
}

// MaxGradient writes to dx, for each element, the gradients of the windows whose place it is.
func MaxGradient[T float, P Place](v Windows, p *op.Pool, dx, dy []T, places []P) {
	if len(dx) == 0 {
		return
	}
	w, gradient := v.w, MaxPlaneGradient[T, P](v)
	w.eachChannel(p, len(dx)/w.inLen(), func(ch int) {
		gradient(part(dx, ch, w.inLen()), part(dy, ch, w.outLen()), part(places, ch, w.outLen()))
	})
}

// MaxPlaneGradient returns what MaxGradient does to one channel, for any number of callers at once.
func MaxPlaneGradient[T float, P Place](v Windows) func(dx, dy []T, places []P) {
	w := v.w
	g := giver{w, w.allRows(), w.offsets(), w.met()}
	return func(dx, dy []T, places []P) {
		clear(dx)
		give(&g, dx, dy, places)
	}
}

// A giver knows where the windows lie.
type giver struct {
	*window
	rows  [][]covered // by row of the output
	off   []int       // how far each place of the kernel is from the first
	spans []tap       // outputs along the last axis
}

// offsets are how far each place of the kernel is from the first.
func (w *window) offsets() []int {
	off := make([]int, w.taken())
	for t := range off {
		step, k := 1, t
		for i := w.last(); i >= 0; i-- {
			off[t] += k % w.kernel[i] * w.dilation[i] * step
			step *= w.in[i]
			k /= w.kernel[i]
		}
	}
	return off
}

// give adds one channel's gradients. A window that lies in the padding has none to give, nor has one whose place is
// none of the kernel.
func give[T float, P Place](g *giver, dx, dy []T, places []P) {
	last := g.last()
	for o, rows := range g.rows {
		if len(rows) == 0 {
			continue
		}
		first := rows[0].off - g.off[rows[0].tap*g.kernel[last]] - g.begin[last]
		from, at := part(dy, o, g.out[last]), part(places, o, g.out[last])
		for _, s := range g.spans {
			giveRow(dx, from[s.lo:s.hi], at[s.lo:s.hi], g.off, first+s.lo*g.stride[last], g.stride[last])
		}
	}
}

// giveRow adds the gradients of windows that lie stride apart.
func giveRow[T float, P Place](dx, dy []T, places []P, off []int, first, stride int) {
	places = places[:len(dy)]
	for i, v := range dy {
		if t := int(places[i]); t >= 0 && t < len(off) {
			if x := first + off[t]; x >= 0 && x < len(dx) {
				dx[x] += v
			}
		}
		first += stride
	}
}

// met are the outputs along the last axis whose windows meet the input.
func (w *window) met() []tap {
	var spans []tap
	for o := range w.out[w.last()] {
		if lo, hi := w.inside(w.last(), o); lo >= hi {
			continue
		}
		if n := len(spans); n > 0 && spans[n-1].hi == o {
			spans[n-1].hi++
		} else {
			spans = append(spans, tap{lo: o, hi: o + 1})
		}
	}
	return spans
}

// AverageGradient writes to dx the gradient of AveragePool. padding says that places in the padding were counted.
func AverageGradient[T float](v Windows, p *op.Pool, dx, dy []T, padding bool) {
	if len(dx) == 0 {
		return
	}
	w, add := v.w, arithmeticOf[T]().add
	last, all := w.last(), w.allRows()
	w.eachChannel(p, len(dx)/w.inLen(), func(ch int) {
		to, from := part(dx, ch, w.inLen()), part(dy, ch, w.outLen())
		clear(to)
		line := make([]T, w.in[last])
		for o, rows := range all {
			spreadRow(w, line, part(from, o, w.out[last]), w.countedRows(o, padding), padding)
			for _, r := range rows {
				add(to[r.off:][:len(line)], line)
			}
		}
	})
}

// spreadRow divides a row of the output's gradient by what was counted, and adds it up along the last axis.
func spreadRow[T float](w *window, line, dy []T, rows int, padding bool) {
	clear(line)
	last := w.last()
	for i, v := range dy {
		lo, hi := w.inside(last, i)
		if lo == hi {
			continue
		}
		v /= T(rows * w.counted(last, i, padding))
		first := i*w.stride[last] - w.begin[last]
		for k := lo; k < hi; k++ {
			line[first+k*w.dilation[last]] += v
		}
	}
}
