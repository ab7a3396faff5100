package conv

// A maxBand pools a band of a channel: rows along the first axis of the output. The input under them is padded and
// processed as one line of elements: a window along an axis is a maximum of elements that are a fixed distance apart,
// and the maximum of a large window is that of two smaller ones, which may overlap.
type maxBand[T poolElement] struct {
	*window
	arithmetic[T]
	rows       int
	long       []int // lengths of the padded input
	blank      [][]int
	line, next []T
}

// maxBandSize is the number of elements of a band: two of them stay in the L1 cache.
const maxBandSize = 1 << 12

func maxBandOf[T poolElement](w *window) *maxBand[T] {
	if len(w.in) == 1 {
		w = w.asImage()
	}
	p := &maxBand[T]{window: w, arithmetic: arithmeticOf[T](), long: make([]int, len(w.in)), blank: w.blank()}
	for i := range p.long {
		p.long[i] = (w.out[i]-1)*w.stride[i] + w.span(i)
	}
	p.rows = min(max((maxBandSize/volume(p.long[1:])-w.span(0))/w.stride[0]+1, 1), w.out[0])
	p.long[0] = (p.rows-1)*w.stride[0] + w.span(0)
	p.line, p.next = make([]T, volume(p.long)), make([]T, volume(p.long))
	return p
}

// channel pools one channel.
func (p *maxBand[T]) channel(y, x []T) {
	for o := 0; o < p.out[0]; o += p.rows {
		p.load(x, o)
		p.store(y, p.pool(), o)
	}
	p.fillBlank(y)
}

// fillBlank writes the maxima of windows that cover only padding. In line, padding is -Inf, the maximum of nothing: the
// lowest finite number would exceed a window of -Inf.
func (p *maxBand[T]) fillBlank(y []T) {
	for axis, outputs := range p.blank {
		for outer := range volume(p.out[:axis]) {
			for _, o := range outputs {
				fill(part(y, outer*p.out[axis]+o, volume(p.out[axis+1:])), lowest[T]())
			}
		}
	}
}

// load copies the input under the output's rows from o on, with padding.
func (p *maxBand[T]) load(x []T, o int) {
	fill(p.line, leastOf[T]())
	last := p.last()
	skip, begin := max(-p.begin[last], 0), max(p.begin[last], 0)
	n := min(p.in[last]-skip, p.long[last]-begin)
	for i := range len(p.line) / p.long[last] {
		if off := p.under(i, o); off >= 0 && n > 0 {
			to := part(p.line, i, p.long[last])[begin:][:n]
			copy(to, x[off*p.in[last]+skip:])
		}
	}
}

// under is the row of the input at row i of the band, over all axes but the last, or -1.
func (p *maxBand[T]) under(i, o int) int {
	off, step := 0, 1
	for axis := p.last() - 1; axis >= 0; axis-- {
		at := i%p.long[axis] - p.begin[axis]
		if axis == 0 {
			at += o * p.stride[0]
		}
		if at < 0 || at >= p.in[axis] {
			return -1
		}
		off += at * step
		step *= p.in[axis]
		i /= p.long[axis]
	}
	return off
}

// pool returns the maxima of the windows that start at each element.
func (p *maxBand[T]) pool() []T {
	line, next, distance := p.line, p.next, 1
	for axis := p.last(); axis >= 0; axis-- {
		for size := 1; size < p.kernel[axis]; {
			more := min(size, p.kernel[axis]-size)
			shift := more * p.dilation[axis] * distance
			to := next[:len(line)-shift]
			p.max(to, line[:len(to)], line[shift:])
			line, next = to, line
			size += more
		}
		// The next axis has its neighbours a whole line of this one apart. Maxima across the end of a line are computed,
		// too, but no output starts there.
		distance *= p.long[axis]
	}
	return line
}

// store writes the output's rows from o on.
func (p *maxBand[T]) store(y, line []T, o int) {
	last := p.last()
	inner := volume(p.out[:last]) / p.out[0] // rows per row of the band
	for r := range min(p.rows, p.out[0]-o) * inner {
		p.stridedCopy(part(y, o*inner+r, p.out[last]), line[p.start(r):], p.stride[last])
	}
}

// start is the first element of the windows of row r of the output's band.
func (p *maxBand[T]) start(r int) int {
	off, step := 0, p.long[p.last()]
	for axis := p.last() - 1; axis >= 0; axis-- {
		n := p.out[axis]
		if axis == 0 {
			n = p.rows
		}
		off += r % n * p.stride[axis] * step
		step *= p.long[axis]
		r /= n
	}
	return off
}
