package conv

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// A window is the geometry of a kernel that slides over the spatial axes of its input; one entry per axis.
type window struct {
	in, out                  []int // lengths
	kernel, stride, dilation []int
	begin, end               []int // padding
}

// An extent is a function for the number of windows along an axis of length in, where padded includes the padding begin
// and end, and span is the dilated size of the kernel.
type extent func(in, begin, padded, span, stride int) int

// windowOf reads the common attributes of convolutions and pools. kernel is used if there is no attribute kernel_shape,
// and must agree with it; it may be nil.
func windowOf(n *op.Node, spatial, kernel []int64, places extent) (*window, error) {
	w, err := readWindow(n, spatial, kernel)
	if err != nil {
		return nil, err
	}
	return w, w.resolve(n.Text("auto_pad", notSet), places)
}

// readWindow reads the attributes, without the output's lengths.
func readWindow(n *op.Node, spatial, kernel []int64) (*window, error) {
	rank := len(spatial)
	if rank == 0 {
		return nil, fmt.Errorf("input X has no spatial axes")
	}
	w := &window{out: make([]int, rank)}
	var err error
	if w.kernel, err = kernelShape(n, rank, kernel); err != nil {
		return nil, err
	}
	for _, a := range []struct {
		to      *[]int
		name    string
		given   []int64
		n       int
		def, lo int64
	}{
		{&w.in, "spatial axes", spatial, rank, 0, 0},
		{&w.stride, "strides", n.Ints("strides"), rank, 1, 1},
		{&w.dilation, "dilations", n.Ints("dilations"), rank, 1, 1},
		{&w.begin, "pads", n.Ints("pads"), 2 * rank, 0, 0},
	} {
		if *a.to, err = sizes(a.name, a.given, a.n, a.def, a.lo); err != nil {
			return nil, err
		}
	}
	w.begin, w.end = w.begin[:rank:rank], w.begin[rank:]
	return w, nil
}

func kernelShape(n *op.Node, rank int, kernel []int64) ([]int, error) {
	given := n.Ints("kernel_shape")
	if kernel == nil {
		if len(given) == 0 {
			return nil, fmt.Errorf("attribute kernel_shape is missing")
		}
		return sizes("kernel_shape", given, rank, 1, 1)
	}
	k, err := sizes("kernel of W", kernel, rank, 1, 1)
	if err != nil || len(given) == 0 {
		return k, err
	}
	for i, d := range given {
		if i >= rank || d != kernel[i] {
			return nil, fmt.Errorf("kernel_shape %v does not match W, %v", given, kernel)
		}
	}
	return k, nil
}

// most bounds attributes, so that sums and products of two do not overflow.
const most = 1 << 30

// sizes checks a list of n numbers; an absent one is n times def.
func sizes(name string, given []int64, n int, def, lo int64) ([]int, error) {
	if len(given) != 0 && len(given) != n {
		return nil, fmt.Errorf("%s has %d entries, want %d", name, len(given), n)
	}
	out := make([]int, n)
	for i := range out {
		v := def
		if len(given) != 0 {
			v = given[i]
		}
		if v < lo || v > most {
			return nil, fmt.Errorf("%s has %d, out of range %d to %d", name, v, lo, most)
		}
		out[i] = int(v)
	}
	return out, nil
}

// Values of the attribute auto_pad.
const (
	notSet    = "NOTSET"
	valid     = "VALID"
	sameUpper = "SAME_UPPER"
	sameLower = "SAME_LOWER"
)

// resolve computes the padding and the output's lengths.
func (w *window) resolve(auto string, places extent) error {
	for i, in := range w.in {
		switch auto {
		case notSet, "":
		case valid:
			w.begin[i], w.end[i] = 0, 0
		case sameUpper, sameLower:
			w.out[i] = ceilDiv(in, w.stride[i])
			w.same(i, auto == sameLower)
			continue
		default:
			return fmt.Errorf("auto_pad is %q, want %s, %s, %s or %s", auto, notSet, valid, sameUpper, sameLower)
		}
		padded := in + w.begin[i] + w.end[i]
		if padded <= w.span(i)-w.stride[i] && in > 0 {
			return fmt.Errorf("the dilated kernel has size %d, axis %d of X has %d with padding", w.span(i), i+2,
				padded)
		}
		w.out[i] = max(places(in, w.begin[i], padded, w.span(i), w.stride[i]), 0)
	}
	return nil
}

// same pads axis i for SAME_UPPER or SAME_LOWER; odd padding is larger on one side. If windows leave gaps the padding
// is negative: elements at the ends are not covered, by the specification's formula and in ONNX Runtime.
func (w *window) same(i int, lower bool) {
	total := (w.out[i]-1)*w.stride[i] + w.span(i) - w.in[i]
	w.begin[i] = total / 2
	if lower {
		w.begin[i] = (total + 1) / 2
	}
	w.end[i] = total - w.begin[i]
}

// span is the dilated size of the kernel along axis i.
func (w *window) span(i int) int { return (w.kernel[i]-1)*w.dilation[i] + 1 }

// floorExtent counts the windows inside the input. An input that is shorter than the kernel, by less than a stride, has
// one window that exceeds it: this is how ONNX Runtime divides, and models rely on it.
func floorExtent(in, begin, padded, span, stride int) int {
	if padded <= span-stride {
		return 0
	}
	return (padded-span)/stride + 1
}

// ceilExtent also counts a last window that exceeds the padding, unless it would start after the input.
func ceilExtent(in, begin, padded, span, stride int) int {
	if padded < span {
		return 0
	}
	n := ceilDiv(padded-span, stride) + 1
	if (n-1)*stride >= in+begin {
		n--
	}
	return n
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// taps are the outputs lo to hi-1 along axis i for which tap k of the kernel is inside the input, and the position of
// the first of them.
func (w *window) taps(i, k int) (lo, hi, from int) {
	shift := k*w.dilation[i] - w.begin[i] // position of output 0's tap
	if shift < 0 {
		lo = ceilDiv(-shift, w.stride[i])
	}
	hi = 0
	if last := w.in[i] - 1 - shift; last >= 0 {
		hi = min(last/w.stride[i]+1, w.out[i])
	}
	return lo, max(hi, lo), lo*w.stride[i] + shift
}

// inside are the taps lo to hi-1 of output o along axis i that are inside the input.
func (w *window) inside(i, o int) (lo, hi int) {
	first, d := o*w.stride[i]-w.begin[i], w.dilation[i]
	if first < 0 {
		lo = ceilDiv(-first, d)
	}
	if last := w.in[i] - 1 - first; last >= 0 {
		hi = min(last/d+1, w.kernel[i])
	}
	return lo, max(hi, lo)
}

// counted is the number of taps of output o along axis i inside the input, or also the padding.
func (w *window) counted(i, o int, padding bool) int {
	if !padding {
		lo, hi := w.inside(i, o)
		return hi - lo
	}
	// With ceil_mode a last window may exceed the padding: what is beyond it does not count.
	space := w.in[i] + w.end[i] - (o*w.stride[i] - w.begin[i])
	return min(max(ceilDiv(space, w.dilation[i]), 0), w.kernel[i])
}

// blank are the outputs along each axis whose windows cover only padding.
func (w *window) blank() [][]int {
	list := make([][]int, len(w.out))
	for i, n := range w.out {
		for o := range n {
			if lo, hi := w.inside(i, o); lo == hi {
				list[i] = append(list[i], o)
			}
		}
	}
	return list
}

// last is the axis whose elements are contiguous.
func (w *window) last() int { return len(w.in) - 1 }

// inLen, outLen and kernelSize are the numbers of elements of one channel and of the kernel.
func (w *window) inLen() int      { return volume(w.in) }
func (w *window) outLen() int     { return volume(w.out) }
func (w *window) kernelSize() int { return volume(w.kernel) }

func volume(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// A coveredRow is a row of one channel of the input that a window covers, along the last axis.
type coveredRow struct {
	off int // of its first element
	tap int // row of the kernel
}

// rows are the rows that the window at row o of the channel's output covers, in order. It uses the memory of to.
func (w *window) rows(to []coveredRow, o int) []coveredRow {
	to = append(to[:0], coveredRow{})
	last := w.last()
	inner := volume(w.out[:last])
	for i := range last {
		inner /= w.out[i]
		to = w.multiply(to, i, o/inner%w.out[i])
	}
	for j := range to {
		to[j].off *= w.in[last]
	}
	return to
}

// allRows are those of all rows of a channel's output.
func (w *window) allRows() [][]coveredRow {
	all := make([][]coveredRow, w.outLen()/max(w.out[w.last()], 1))
	for o := range all {
		all[o] = w.rows(nil, o)
	}
	return all
}

// multiply appends the positions along axis i that the window at o covers to each position in to.
func (w *window) multiply(to []coveredRow, i, o int) []coveredRow {
	lo, hi := w.inside(i, o)
	n, m := len(to), hi-lo
	to = slices.Grow(to[:0], n*m)[:n*m]
	if m == 0 {
		return to
	}
	first := o*w.stride[i] - w.begin[i] + lo*w.dilation[i]
	// Backwards, since the list grows in place: entry j becomes entries j·m to j·m+m-1.
	for j := n - 1; j >= 0; j-- {
		before := to[j]
		for k := m - 1; k >= 0; k-- {
			to[j*m+k] = coveredRow{before.off*w.in[i] + first + k*w.dilation[i], before.tap*w.kernel[i] + lo + k}
		}
	}
	return to
}
