package conv

import "github.com/mcompress/mcompress/internal/kernel"

// Images with channels last are transposed a strip of channels at a time: a line of the cache of each pixel.
const (
	stripChannels = 16
	stripPixels   = 256 // at once
	stripSize     = stripChannels * stripPixels
	minTransposed = 8 // pixels of a row that is transposed alone: a vector
)

// copyLast copies n channels, from channel c on, of an input with channels last by phases, with its padding.
func (u sparseUnit) copyLast(to, x []float32, c, n int, strip []float32) {
	x = x[u.product*u.InC*u.InArea()+c:]
	for _, py := range u.axes[0].phases {
		rows := u.phase(0, py, u.row, u.rows+u.axes[0].reach)
		for _, px := range u.axes[1].phases {
			columns := u.phase(1, px, 0, u.wide)
			// Cleared before, not after: positions of padding are what copyPhase leaves out.
			for i := range n {
				clear(to[i*u.channel():][:u.plane()])
			}
			u.copyPhase(to, x, rows, columns, n, strip)
			to = to[u.plane():]
		}
	}
}

// copyPhase is copyLast of the positions of a phase: some rows at once.
func (u sparseUnit) copyPhase(to, x []float32, rows, columns tap, n int, strip []float32) {
	wide := columns.hi - columns.lo
	if wide == 0 {
		return
	}
	if wide < minTransposed {
		u.copyShort(to, x, rows, columns, n, strip)
		return
	}
	for r := range rows.hi - rows.lo {
		kernel.TransposeInto(to[(r+rows.lo)*u.wide+columns.lo:], u.channel(), x[u.pixel(rows, columns, r):],
			u.stride[1]*u.InC, wide, n)
	}
}

// pixel is where row r of a phase is in the input.
func (u sparseUnit) pixel(rows, columns tap, r int) int {
	return ((rows.from+r*u.stride[0])*u.in[1] + columns.from) * u.InC
}

// copyShort is copyPhase of short rows: pixels of several rows are transposed together.
func (u sparseUnit) copyShort(to, x []float32, rows, columns tap, n int, strip []float32) {
	wide := columns.hi - columns.lo
	step := stripPixels / wide
	for r := 0; r < rows.hi-rows.lo; r += step {
		high := min(step, rows.hi-rows.lo-r)
		if wide == u.in[1] && u.stride[0] == 1 {
			kernel.TransposeInto(strip, step*wide, x[u.pixel(rows, columns, r):], u.InC, high*wide, n)
		} else {
			for i := range high {
				kernel.TransposeInto(strip[i*wide:], step*wide, x[u.pixel(rows, columns, r+i):], u.stride[1]*u.InC,
					wide, n)
			}
		}
		for i := range n {
			kernel.CopyRows(to[i*u.channel()+(r+rows.lo)*u.wide+columns.lo:], u.wide, strip[i*step*wide:], wide, high,
				wide)
		}
	}
}

// loadLast is load of an output with channels last.
func (b *sparseBlock) loadLast(sums, y []float32) {
	b.strips(func(c, n int) {
		b.spans(func(lane, at, pixels int) {
			kernel.CopyRows(b.strip[lane*stripChannels:], stripChannels, y[b.place(at, c):], b.OutC, pixels, n)
		})
		kernel.TransposeInto(sums[c*b.cols:], b.cols, b.strip, stripChannels, b.cols, n)
	})
}

// storeLast is store of an output with channels last.
func (b *sparseBlock) storeLast(sums, y []float32) {
	// A row of eight pixels or more is transposed directly into its place.
	if b.out[1] < minTransposed {
		b.storeShort(sums, y)
		return
	}
	b.spans(func(lane, at, pixels int) {
		kernel.TransposeInto(y[b.place(at, 0):], b.OutC, sums[lane:], b.cols, b.channels, pixels)
	})
}

// storeShort is storeLast of short rows.
func (b *sparseBlock) storeShort(sums, y []float32) {
	b.strips(func(c, n int) {
		kernel.TransposeInto(b.strip, stripChannels, sums[c*b.cols:], b.cols, n, b.cols)
		b.spans(func(lane, at, pixels int) {
			kernel.CopyRows(y[b.place(at, c):], b.OutC, b.strip[lane*stripChannels:], stripChannels, pixels, n)
		})
	})
}

// strips calls f for n channels from channel c of the block on.
func (b *sparseBlock) strips(f func(c, n int)) {
	for c := 0; c < b.channels; c += stripChannels {
		f(c, min(stripChannels, b.channels-c))
	}
}

// place is where channel c of the block of an output is.
func (b *sparseBlock) place(at, c int) int {
	return (b.product*b.OutArea()+at)*b.OutC + b.channel + c
}
