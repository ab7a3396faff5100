package opset

import (
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// target is the shape that input i of n holds: its sizes where the payload is at
// hand (0 and below unchanged), else only how many there are.
func (f *inference) target(n *ir.Node, i int) (sizes []int64, rank int, ok bool) {
	v := n.Input(i)
	if sizes, ok := f.ints(v); ok {
		return sizes, len(sizes), true
	}
	if s, ok := f.shape(v); ok && len(s) == 1 && s[0].Known() && s[0].N <= maxElems {
		return nil, int(s[0].N), true
	}
	return nil, 0, false
}

func reshape(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	sizes, rank, ok := f.target(n, 1)
	if a := n.Attr("shape"); a != nil && a.Ref == "" { // before opset 5
		sizes, rank, ok = a.Ints, len(a.Ints), true
	}
	if !ok || sizes == nil {
		return unknown(rank), ok
	}
	allowZero, ok := attrInt(n, "allowzero", 0)
	in, inOK := f.shape(n.Input(0))
	out := unknown(rank)
	rest := -1
	for i, size := range sizes {
		switch {
		case size > 0 || size == 0 && ok && allowZero != 0:
			out[i] = ir.Dim{N: size}
		case size == 0 && ok && inOK && i < len(in):
			out[i] = in[i]
		case size < 0:
			rest = i
		}
	}
	// After all other sizes, some of which are copied from the input.
	if rest >= 0 && inOK {
		out[rest] = remainder(in, out, rest)
	}
	return out, true
}

// remainder is the size at that axis that makes out hold as many elements as in.
func remainder(in, out []ir.Dim, at int) ir.Dim {
	rest := slices.Concat(out[:at], out[at+1:])
	have, ok := product(in)
	need, ok2 := product(rest)
	if !ok || !ok2 || need == 0 || have%need != 0 {
		return ir.Dim{N: -1}
	}
	return ir.Dim{N: have / need}
}

// product is the number of elements, if it is known and fits.
func product(shape []ir.Dim) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if !d.Known() || d.N > 0 && n > math.MaxInt64/d.N {
			return 0, false
		}
		n *= d.N
	}
	return n, true
}

func ofShape(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	sizes, rank, ok := f.target(n, 0)
	if sizes == nil {
		return unknown(rank), ok
	}
	return dims(sizes), ok
}

func expand(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	sizes, rank, ok2 := f.target(n, 1)
	if !ok || !ok2 {
		return nil, false
	}
	if sizes == nil {
		return unknown(max(len(s), rank)), true
	}
	return Broadcast(s, dims(sizes)), true
}

// spatial keeps the batch and the channels; a window moves over the rest, or covers all of it.
func spatial(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	if !ok || len(s) < 2 {
		return nil, false
	}
	if strings.HasPrefix(n.Op.Type, "Global") {
		return append(append([]ir.Dim{}, s[:2]...), ones(len(s)-2)...), true
	}
	return append(append([]ir.Dim{}, s[:2]...), windowSizes(n, s[2:], kernelShape(n, len(s)-2))...), true
}

// conv has the batch of the first input, a channel for each filter of the weight, and the
// places of a window.
func conv(weight int) shapeRule {
	return func(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
		x, ok := f.shape(n.Input(0))
		w, ok2 := f.shape(n.Input(weight))
		if !ok && !ok2 || ok && len(x) < 2 || ok2 && len(w) < 2 {
			return nil, false
		}
		out := unknown(max(len(x), len(w)))
		if ok {
			out[0] = x[0]
		}
		if ok2 {
			out[1] = w[0]
		}
		if ok && ok2 && len(x) == len(w) {
			copy(out[2:], windowSizes(n, x[2:], w[2:]))
		}
		return out, true
	}
}

func convTranspose(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	out, ok := conv(1)(f, n, i)
	if !ok {
		return nil, false
	}
	// The sizes of a transposed convolution are not those of conv, and the filters are on the second axis of its
	// weight.
	copy(out[1:], unknown(len(out)-1))
	w, ok := f.shape(n.Input(1))
	group, ok2 := attrInt(n, "group", 1)
	if ok && ok2 && w[1].Known() {
		out[1] = ir.Dim{N: w[1].N * group}
	}
	return out, true
}

// recurrent makes all states with a direction axis, and the last ones without time.
func recurrent(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	x, ok := f.shape(n.Input(0))
	r, ok2 := f.shape(n.Input(2))
	out := unknown(3)
	if ok && ok2 && len(x) == 3 && len(r) == 3 && n.Int("layout", 0) == 0 {
		out = []ir.Dim{r[0], x[1], r[2]}
		if i == 0 {
			return append([]ir.Dim{x[0]}, out...), true
		}
	}
	if i == 0 {
		return unknown(4), true
	}
	return out, true
}

// shapeOf has an element for each axis from start to end.
func shapeOf(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	start, ok2 := attrInt(n, "start", 0)
	end, ok3 := attrInt(n, "end", int64(len(s)))
	if !ok || !ok2 || !ok3 {
		return unknown(1), true
	}
	return dims([]int64{sliced(int64(len(s)), start, end, 1)}), true
}

// slice keeps the sizes of the axes that it does not cut, and of the others where
// all about the cut is constant.
func slice(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	if !ok {
		return nil, false
	}
	starts, ok := f.listOf(n, "starts", 1)
	ends, ok2 := f.listOf(n, "ends", 2)
	axes, ok3 := f.listOf(n, "axes", 3)
	steps, ok4 := f.listOf(n, "steps", 4)
	if !ok || !ok2 || !ok3 || !ok4 || len(starts) != len(ends) {
		return unknown(len(s)), true
	}
	if axes == nil {
		axes = allAxes(len(starts))
	}
	if steps == nil {
		steps = slices.Repeat([]int64{1}, len(starts))
	}
	if len(axes) != len(starts) || len(steps) != len(starts) {
		return nil, false
	}
	out := append([]ir.Dim{}, s...)
	for i, a := range axes {
		at, inside := axis(a, len(out))
		if !inside {
			return nil, false
		}
		out[at] = ir.Dim{N: -1}
		if s[at].Known() && plain(s[at].N, starts[i], steps[i]) {
			out[at].N = sliced(s[at].N, starts[i], ends[i], steps[i])
		}
	}
	return out, true
}

// plain rules out a cut that runtimes may read differently: backwards from before
// the first element, or in steps that no model means.
func plain(size, start, step int64) bool {
	return step > 0 && step <= math.MaxInt32 || step < 0 && step >= math.MinInt32 && start+size >= 0
}

// listOf is a list that older versions have as an attribute and newer ones as input
// i, nil if it is absent; it is not known where it is not constant.
func (f *inference) listOf(n *ir.Node, name string, i int) ([]int64, bool) {
	if n.Attr(name) != nil || n.Input(i) == nil {
		return attrInts(n, name)
	}
	return f.ints(n.Input(i))
}

// sliced is how many of size elements lie from start, in steps, before end; both may
// count from the back or lie outside.
func sliced(size, start, end, step int64) int64 {
	low, high := int64(0), size
	if step < 0 {
		low, high = -1, size-1
	}
	clamp := func(at int64) int64 {
		if at < 0 {
			at += size
		}
		return min(max(at, low), high)
	}
	length := clamp(end) - clamp(start)
	if step < 0 {
		length, step = -length, -step
	}
	if length <= 0 {
		return 0
	}
	return (length-1)/step + 1
}
