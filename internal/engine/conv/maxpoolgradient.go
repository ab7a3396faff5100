package conv

import (
	"slices"
)

// An Argmax is the kernel tap with the maximum of a window.
type Argmax interface{ uint8 | uint16 | int32 }

// KernelSize is the number of kernel taps.
func (v Windows) KernelSize() int { return v.w.kernelSize() }

// ArgmaxChannel returns a function that pools a channel like MaxPool and writes the argmax of each window, unless
// places is nil: the kernel tap of its first maximum, 0 for a window that covers only padding. It may be called
// concurrently.
func ArgmaxChannel[T float, P Argmax](v Windows) func(y []T, places []P, x []T) {
	w, rows := v.w, v.w.allRows()
	f := finder{window: w, rows: rows, taps: make([][]candidate, len(rows)), half: w.isHalving()}
	f.lo, f.hi = w.interior()
	for o := range rows {
		f.taps[o] = w.candidates(rows[o])
	}
	return func(y []T, places []P, x []T) {
		// One pass for float32 without NaN and -Inf; of others the fast pool finds the maxima, and then their taps.
		if places == nil {
			maxChannel[T](w)(y, x)
		} else if !maxArgmax(&f, places, y, x) {
			maxChannel[T](w)(y, x)
			findArgmax(&f, places, y, x)
		}
	}
}

// A finder holds the positions of the windows.
type finder struct {
	*window
	rows   [][]coveredRow // by row of the output
	taps   [][]candidate  // by row of the output
	lo, hi int            // outputs along the last axis whose windows are inside the input
	half   bool
}

// A candidate is a kernel tap, and its offset from the start of output 0 of the row.
type candidate struct{ off, tap int }

// findArgmax finds those of one channel.
func findArgmax[T float, P Argmax](f *finder, places []P, y, x []T) {
	last := f.last()
	for o, rows := range f.rows {
		row, to := part(y, o, f.out[last]), part(places, o, f.out[last])
		if f.lo < f.hi {
			findRow(to[f.lo:f.hi], row[f.lo:f.hi], x, f.taps[o], f.lo*f.stride[last], f.stride[last])
		}
		// Windows with padding have fewer taps than candidates, and NaN equals nothing.
		for i, v := range row {
			if i < f.lo || i >= f.hi || v != v {
				_, at := firstTap(f.window, x, rows, i)
				to[i] = P(at)
			}
		}
	}
}

// findRow finds the first tap that holds each of y, for windows that are stride apart, without branches.
func findRow[T float, P Argmax](places []P, y, x []T, taps []candidate, from, stride int) {
	places = places[:len(y)]
	for i, v := range y {
		at := 0
		// Taps are in reverse order, so that of several equal ones the first is assigned last.
		for _, t := range taps {
			if x[from+t.off] == v {
				at = t.tap
			}
		}
		places[i] = P(at)
		from += stride
	}
}

// interior are the outputs along the last axis for which all kernel taps are inside the input.
func (w *window) interior() (lo, hi int) {
	lo, hi = 0, w.out[w.last()]
	for k := range w.kernel[w.last()] {
		from, to, _ := w.taps(w.last(), k)
		lo, hi = max(lo, from), min(hi, to)
	}
	return lo, hi
}

// candidates are all taps on these rows, the last one first.
func (w *window) candidates(rows []coveredRow) []candidate {
	var to []candidate
	last := w.last()
	for _, r := range slices.Backward(rows) {
		for k := w.kernel[last] - 1; k >= 0; k-- {
			to = append(to, candidate{r.off - w.begin[last] + k*w.dilation[last], r.tap*w.kernel[last] + k})
		}
	}
	return to
}

// firstTap is the maximum of the window at o of these rows, +0 if it has both zeros, and the tap of the first element
// that equals it. NaN counts as the maximum.
func firstTap[T float](w *window, x []T, rows []coveredRow, o int) (T, int) {
	last := w.last()
	lo, hi := w.inside(last, o)
	first := o*w.stride[last] - w.begin[last]
	top, at := lowest[T](), -1
	for _, r := range rows {
		for k := lo; k < hi; k++ {
			v := x[r.off+first+k*w.dilation[last]]
			if at < 0 || v > top || v != v && top == top {
				top, at = v, r.tap*w.kernel[last]+k
			}
			top = max(top, v)
		}
	}
	return top, max(at, 0)
}

// MaxGradientChannel returns a function that writes to a channel dx, for each element, the sum of the gradients of the
// windows whose argmax it is. It may be called concurrently.
func MaxGradientChannel[T float, P Argmax](v Windows) func(dx, dy []T, places []P) {
	w := v.w
	g := scatterer{w, w.allRows(), w.offsets(), w.overlapping()}
	return func(dx, dy []T, places []P) {
		clear(dx)
		scatter(&g, dx, dy, places)
	}
}

// A scatterer holds the positions of the windows.
type scatterer struct {
	*window
	rows  [][]coveredRow // by row of the output
	off   []int          // offset of each kernel tap from the first
	spans []tap          // outputs along the last axis
}

// offsets are those of the kernel taps from the first.
func (w *window) offsets() []int {
	off := make([]int, w.kernelSize())
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

// scatter adds one channel's gradients. Windows that cover only padding, and invalid argmaxes, are ignored.
func scatter[T float, P Argmax](g *scatterer, dx, dy []T, places []P) {
	last := g.last()
	for o, rows := range g.rows {
		if len(rows) == 0 {
			continue
		}
		// The position of the window's first tap, which may be padding: computed back from the first covered row.
		first := rows[0].off - g.off[rows[0].tap*g.kernel[last]] - g.begin[last]
		from, at := part(dy, o, g.out[last]), part(places, o, g.out[last])
		for _, s := range g.spans {
			scatterRow(dx, from[s.lo:s.hi], at[s.lo:s.hi], g.off, first+s.lo*g.stride[last], g.stride[last])
		}
	}
}

// scatterRow adds the gradients of windows that are stride apart.
func scatterRow[T float, P Argmax](dx, dy []T, places []P, off []int, first, stride int) {
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

// overlapping are the outputs along the last axis whose windows overlap the input.
func (w *window) overlapping() []tap {
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

// AverageGradientChannel returns a function that writes to a channel dx the gradient of AveragePool. padding is
// count_include_pad. It may be called concurrently.
func AverageGradientChannel[T float](v Windows, padding bool) func(dx, dy []T) {
	w, add := v.w, arithmeticOf[T]().add
	last, all := w.last(), w.allRows()
	return func(dx, dy []T) {
		clear(dx)
		line := make([]T, w.in[last])
		for o, rows := range all {
			spreadRow(w, line, part(dy, o, w.out[last]), w.countedRows(o, padding), padding)
			for _, r := range rows {
				add(dx[r.off:][:len(line)], line)
			}
		}
	}
}

// spreadRow divides a row of the output's gradient by the number of counted elements, and adds it up along the last
// axis.
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
