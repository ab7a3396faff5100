package conv

import "github.com/mcompress/mcompress/engine/op"

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
	w, a := v.w, arithmeticOf[T]()
	w.eachChannel(p, len(y)/w.outLen(), func(ch int) {
		out, in := part(y, ch, w.outLen()), part(x, ch, w.inLen())
		maxOver(w, a, out, in)
		if places != nil {
			placesOver(w, part(places, ch, w.outLen()), out, in)
		}
	})
}

// A candidate is a place of the kernel, and how far it is from the first of its row.
type candidate struct{ off, tap int }

// placesOver finds the places of one channel.
func placesOver[T float, P Place](w *window, places []P, y, x []T) {
	var rows []covered
	var taps []candidate
	last := w.last()
	lo, hi := w.interior()
	for o := range len(y) / w.out[last] {
		rows = w.rows(rows, o)
		taps = w.candidates(taps, rows)
		row, to := part(y, o, w.out[last]), part(places, o, w.out[last])
		for i := range row {
			at := -1
			if i >= lo && i < hi {
				at = firstEqual(x, taps, i*w.stride[last], row[i])
			}
			if at < 0 {
				at = firstPlace(w, x, rows, i)
			}
			to[i] = P(at)
		}
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

// candidates are all places on these rows, the last one first, counted from where output 0 begins.
func (w *window) candidates(to []candidate, rows []covered) []candidate {
	to = to[:0]
	last := w.last()
	for i := len(rows) - 1; i >= 0; i-- {
		for k := w.kernel[last] - 1; k >= 0; k-- {
			to = append(to, candidate{rows[i].off - w.begin[last] + k*w.dilation[last], rows[i].tap*w.kernel[last] + k})
		}
	}
	return to
}

// firstEqual is the first place that holds v, -1 for none. It has no branches to guess.
func firstEqual[T float](x []T, taps []candidate, from int, v T) int {
	at := -1
	for _, t := range taps {
		if x[from+t.off] == v {
			at = t.tap
		}
	}
	return at
}

// firstPlace is the place of the first of the largest elements of the window at o of these rows. A NaN is larger.
func firstPlace[T float](w *window, x []T, rows []covered, o int) int {
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
	return max(at, 0)
}

// MaxGradient writes to dx, for each element, the gradients of the windows whose place it is.
func MaxGradient[T float, P Place](v Windows, p *op.Pool, dx, dy []T, places []P) {
	if len(dx) == 0 {
		return
	}
	w := v.w
	off := w.offsets()
	w.eachChannel(p, len(dx)/w.inLen(), func(ch int) {
		to := part(dx, ch, w.inLen())
		clear(to)
		giveBack(w, to, part(dy, ch, w.outLen()), part(places, ch, w.outLen()), off)
	})
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

// giveBack adds one channel's gradients. A window that lies in the padding has none to give, nor has one whose place is
// none of the kernel.
func giveBack[T float, P Place](w *window, dx, dy []T, places []P, off []int) {
	var rows []covered
	last := w.last()
	lo, hi := w.interior()
	for o := range len(dy) / w.out[last] {
		if rows = w.rows(rows, o); len(rows) == 0 {
			continue
		}
		first := rows[0].off - off[rows[0].tap*w.kernel[last]] - w.begin[last]
		from, at := part(dy, o, w.out[last]), part(places, o, w.out[last])
		for i, v := range from {
			if i < lo || i >= hi {
				if a, b := w.inside(last, i); a >= b {
					continue
				}
			}
			if t := int(at[i]); t >= 0 && t < len(off) {
				if x := first + i*w.stride[last] + off[t]; x >= 0 && x < len(dx) {
					dx[x] += v
				}
			}
		}
	}
}

// AverageGradient writes to dx the gradient of AveragePool. padding says that places in the padding were counted.
func AverageGradient[T float](v Windows, p *op.Pool, dx, dy []T, padding bool) {
	if len(dx) == 0 {
		return
	}
	w, add := v.w, arithmeticOf[T]().add
	last := w.last()
	w.eachChannel(p, len(dx)/w.inLen(), func(ch int) {
		var rows []covered
		to, from := part(dx, ch, w.inLen()), part(dy, ch, w.outLen())
		clear(to)
		line := make([]T, w.in[last])
		for o := range len(from) / max(w.out[last], 1) {
			rows = w.rows(rows, o)
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
