package conv

import (
	"github.com/mcompress/mcompress/engine/op"
)

// A phase is a part of the transpose of a convolution. Elements of the input that lie a stride apart meet
// the same places of the kernel, so their gradient is a convolution of the output's gradient which moves by one, with
// those places in reverse order. All elements are the phases of each axis with each of the others.
type phase struct {
	*Geometry
	from  *Geometry
	first []int   // by axis: where the phase's elements begin in the input
	taps  [][]int // by axis: places of the kernel
}

// phases are those that a place of the kernel meets; where there is none the gradient is 0.
func (g *Geometry) phases() []phase {
	all := []phase{{Geometry: &Geometry{&window{}, g.Batch, g.Groups, g.OutC, g.InC}, from: g}}
	for i := range g.in {
		var longer []phase
		for r := range min(g.stride[i], g.in[i]) {
			for _, ph := range all {
				if next, ok := ph.along(i, r); ok {
					longer = append(longer, next)
				}
			}
		}
		all = longer
	}
	return all
}

// along is the phase with the elements r, r+stride, … of axis i.
func (ph phase) along(i, r int) (phase, bool) {
	g := ph.from
	stride, dilation := g.stride[i], g.dilation[i]
	var taps []int
	for k := g.kernel[i] - 1; k >= 0; k-- {
		if (r+g.begin[i]-k*dilation)%stride == 0 {
			taps = append(taps, k)
		}
	}
	if len(taps) == 0 {
		return ph, false
	}
	w := *ph.window
	apart := 1 // steps of the output between neighbouring taps
	if len(taps) > 1 {
		apart = (taps[0] - taps[1]) * dilation / stride
	}
	out := ceilDiv(g.in[i]-r, stride)
	begin := -(r + g.begin[i] - taps[0]*dilation) / stride
	w.in, w.out = with(w.in, g.out[i]), with(w.out, out)
	w.kernel, w.stride, w.dilation = with(w.kernel, len(taps)), with(w.stride, 1), with(w.dilation, apart)
	w.begin, w.end = with(w.begin, begin), with(w.end, out-1+(len(taps)-1)*apart-begin-g.out[i]+1)
	h := *ph.Geometry
	h.window = &w
	next := phase{Geometry: &h, from: g, first: with(ph.first, r)}
	next.taps = append(append(next.taps, ph.taps...), taps)
	return next, true
}

// with is a new list: list and v.
func with(list []int, v int) []int { return append(list[:len(list):len(list)], v) }

// whole reports whether the phase is all of the input.
func (ph phase) whole() bool { return ph.Places() == ph.from.Area() }

// weights writes those of the phase: by group, input and output channel, and tap.
func (ph phase) weights(p *op.Pool, to, w []float32) {
	g := ph.from
	places := make([]int, ph.taken())
	for t := range places {
		at, step := 0, 1
		for i, k := ph.last(), t; i >= 0; i-- {
			at += ph.taps[i][k%ph.kernel[i]] * step
			step *= g.kernel[i]
			k /= ph.kernel[i]
		}
		places[t] = at
	}
	p.Rows(g.Groups*g.InC, 1<<14/ph.Depth()+1, func(from, end int) {
		for i := from; i < end; i++ {
			group, c := part(w, i/g.InC, g.OutC*g.Depth()), i%g.InC
			row := part(to, i, ph.Depth())
			for m := range g.OutC {
				kernel := part(part(group, m, g.Depth()), c, g.taken())
				for t, at := range places {
					row[m*len(places)+t] = kernel[at]
				}
			}
		}
	})
}

// Images of a phase are made some at a time, and then put where they belong.
const phaseAtOnce = 1 << 18 // elements

// images is how many are made at once: all of them, where they are made in their place.
func (ph phase) images() int {
	if ph.whole() {
		return ph.Batch
	}
	return min(max(phaseAtOnce/max(ph.Groups*ph.OutC*ph.Places(), 1), 1), ph.Batch)
}

// of is the phase for n images.
func (ph phase) of(n int) *Geometry {
	g := *ph.Geometry
	g.Batch = n
	return &g
}

func (ph phase) work(workers int) int64 {
	size := aligned(4 * int64(ph.Groups*ph.OutC*ph.Depth()))
	n := ph.images()
	if !ph.whole() {
		size += aligned(4 * int64(n*ph.Groups*ph.OutC*ph.Places()))
	}
	return size + max(ph.of(n).freshWork(workers), ph.of(ph.Batch%max(n, 1)).freshWork(workers))
}

func (ph phase) run(p *op.Pool, work []byte, dx, dy, w []float32) {
	room := scratch[float32](work)
	weights := room.take(ph.Groups * ph.OutC * ph.Depth())
	ph.weights(p, weights, w)
	if ph.whole() {
		ph.fresh(p, room, job{x: dy, w: weights, y: dx})
		return
	}
	most, channels := ph.images(), ph.Groups*ph.OutC
	sums := room.take(most * channels * ph.Places())
	for i := 0; i < ph.Batch; i += most {
		n := min(most, ph.Batch-i)
		in := dy[i*ph.Groups*ph.InC*ph.inLen():]
		ph.of(n).fresh(p, room, job{x: in, w: weights, y: sums[:n*channels*ph.Places()]})
		p.Rows(n*channels, 1<<13/ph.Places()+1, func(from, to int) {
			for c := from; c < to; c++ {
				ph.place(part(dx, i*channels+c, ph.from.Area()), part(sums, c, ph.Places()))
			}
		})
	}
}

// place puts a channel's elements where they belong.
func (ph phase) place(dx, sums []float32) {
	last := ph.last()
	for o := range len(sums) / ph.out[last] {
		at, step, rest := ph.first[last], ph.from.in[last], o
		for i := last - 1; i >= 0; i-- {
			at += (ph.first[i] + rest%ph.out[i]*ph.from.stride[i]) * step
			step *= ph.from.in[i]
			rest /= ph.out[i]
		}
		for i, v := range part(sums, o, ph.out[last]) {
			dx[at+i*ph.from.stride[last]] = v
		}
	}
}
