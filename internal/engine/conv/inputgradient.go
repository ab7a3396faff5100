package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A phase is a part of the transpose of a convolution with strides. Input elements that are a stride apart are covered
// by the same kernel taps, so their gradient is a convolution of the output's gradient with stride 1, with those taps
// in reverse order. The phases of all axes are combined.
type phase struct {
	*Geometry
	from  *Geometry
	first []int   // by axis: first input element of the phase
	taps  [][]int // by axis: kernel taps
}

// phases lists those with at least one kernel tap; elsewhere the gradient is 0.
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
		// Tap k of output o reads element o·stride - begin + k·dilation. Element r is read by the taps for which o is an
		// integer, and so are all elements that are a multiple of the stride after it. Taps are reversed, as the
		// transpose of a correlation is a correlation with the reversed kernel.
		if (r+g.begin[i]-k*dilation)%stride == 0 {
			taps = append(taps, k)
		}
	}
	if len(taps) == 0 {
		return ph, false
	}
	w := *ph.window
	distance := 1 // distance of adjacent taps in the output
	if len(taps) > 1 {
		// Taps of one phase are equally spaced, and adjacent ones read outputs this far apart.
		distance = (taps[0] - taps[1]) * dilation / stride
	}
	out := ceilDiv(g.in[i]-r, stride)
	// The output that the first tap, the largest k, reads for element r, negated: as any padding, it is negative if
	// that output exists.
	begin := -(r + g.begin[i] - taps[0]*dilation) / stride
	w.in, w.out = with(w.in, g.out[i]), with(w.out, out)
	w.kernel, w.stride, w.dilation = with(w.kernel, len(taps)), with(w.stride, 1), with(w.dilation, distance)
	w.begin, w.end = with(w.begin, begin), with(w.end, out-1+(len(taps)-1)*distance-begin-g.out[i]+1)
	h := *ph.Geometry
	h.window = &w
	next := phase{Geometry: &h, from: g, first: with(ph.first, r)}
	next.taps = append(append(next.taps, ph.taps...), taps)
	return next, true
}

// with is a new list: list followed by v.
func with(list []int, v int) []int { return append(list[:len(list):len(list)], v) }

// weights writes the weights of the phase: by group, input and output channel, and tap.
func (ph phase) weights(p *op.Pool, to, w []float32) {
	g := ph.from
	places := make([]int, ph.kernelSize())
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
				kernel := part(part(group, m, g.Depth()), c, g.kernelSize())
				for t, at := range places {
					row[m*len(places)+t] = kernel[at]
				}
			}
		}
	})
}

// of is the phase for n images.
func (ph phase) of(n int) *Geometry {
	g := *ph.Geometry
	g.Batch = n
	return &g
}

// elements is the number of elements of the phase for n images.
func (ph phase) elements(n int) int { return n * ph.Groups * ph.OutC * ph.OutArea() }

// An adjoint is the transpose of a convolution. A single phase is computed in place, several phases are computed for
// some images at a time and then interleaved.
type adjoint struct {
	*Geometry
	phases []phase
	images int // maximum number of elements computed at a time
}

const adjointAtOnce = 1 << 18 // elements of the input

func adjointOf(g *Geometry) *adjoint {
	a := &adjoint{g, g.phases(), g.Batch}
	if !a.whole() {
		// The phases of all images at once would be another copy of the gradient.
		a.images = min(max(adjointAtOnce/max(g.Groups*g.InC*g.InArea(), 1), 1), g.Batch)
	}
	return a
}

func (a *adjoint) whole() bool { return len(a.phases) == 1 && a.phases[0].OutArea() == a.InArea() }

// work is the size of the scratch memory; it includes the transposed weights unless own memory is given for them.
func (a *adjoint) work(workers int, own bool, h Halves) int64 {
	kept, spare := int64(0), int64(0)
	phases := Halves{X: h.Y, Y: h.X && a.whole()}
	if h.X && !a.whole() {
		kept += int64(workers) * aligned(4*int64(a.InArea()))
	}
	if !own {
		kept += aligned(4 * int64(a.Groups*a.OutC*a.Depth()))
	}
	for _, ph := range a.phases {
		if !a.whole() {
			kept += aligned(4 * int64(ph.elements(a.images)))
		}
		// The last images may be fewer, for which another algorithm with more scratch memory may be chosen.
		spare = max(spare, ph.of(a.images).computedWork(workers, phases),
			ph.of(a.Batch%max(a.images, 1)).computedWork(workers, phases))
	}
	return kept + spare
}

// run uses turned for the phases' weights, which are at most as many as those of w.
func (a *adjoint) run(p *op.Pool, work []byte, dx, dy Images[float32], w, turned []float32) {
	buf := scratch[float32](work)
	if turned == nil {
		turned = buf.take(len(w))
	}
	weights, sums := make([][]float32, len(a.phases)), make([][]float32, len(a.phases))
	for i, ph := range a.phases {
		n := ph.Groups * ph.OutC * ph.Depth()
		weights[i], turned = turned[:n], turned[n:]
		ph.weights(p, weights[i], w)
	}
	if a.whole() {
		a.phases[0].computed()(p, buf, job{x: dy, w: weights[0], y: dx})
		return
	}
	for i, ph := range a.phases {
		sums[i] = buf.take(ph.elements(a.images))
	}
	channels := make([][]float32, p.Workers())
	for i := range channels {
		if dx.isHalf() {
			channels[i] = buf.take(a.InArea())
		}
	}
	for image := 0; image < a.Batch; image += a.images {
		n := min(a.images, a.Batch-image)
		for i, ph := range a.phases {
			in := dy.from(image * a.Groups * a.OutC * a.OutArea())
			ph.of(n).computed()(p, buf, job{x: in, w: weights[i], y: Images[float32]{Values: sums[i][:ph.elements(n)]}})
		}
		to, grain := dx.from(image*a.Groups*a.InC*a.InArea()), 1<<13/a.InArea()+1
		p.Slots(ceilDiv(n*a.Groups*a.InC, grain), func(task, slot int) {
			for c := task * grain; c < min((task+1)*grain, n*a.Groups*a.InC); c++ {
				channel := target(to, c*a.InArea(), a.InArea(), channels[slot])
				a.interleave(channel, sums, c)
				put(to, c*a.InArea(), channel)
			}
		})
	}
}

// interleave interleaves the phases of a channel.
func (a *adjoint) interleave(dx []float32, sums [][]float32, c int) {
	every := 1
	for i, n := range a.in {
		every *= min(a.stride[i], n)
	}
	// Elements of phases without a tap are covered by no window.
	if len(a.phases) < every {
		clear(dx)
	}
	for i, ph := range a.phases {
		ph.scatter(dx, part(sums[i], c, ph.OutArea()))
	}
}

// scatter copies the elements of the phase to their positions in a channel.
func (ph phase) scatter(dx, sums []float32) {
	last := ph.last()
	for o := range len(sums) / ph.out[last] {
		at, step, rest := ph.first[last], ph.from.in[last], o
		for i := last - 1; i >= 0; i-- {
			at += (ph.first[i] + rest%ph.out[i]*ph.from.stride[i]) * step
			step *= ph.from.in[i]
			rest /= ph.out[i]
		}
		spread(dx[at:], part(sums, o, ph.out[last]), ph.from.stride[last])
	}
}

// spread writes x to positions that are stride apart.
func spread(to, x []float32, stride int) {
	at := 0
	for _, v := range x {
		to[at] = v
		at += stride
	}
}
