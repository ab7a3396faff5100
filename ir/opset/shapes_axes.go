package opset

import "github.com/mcompress/mcompress/ir"

// axesOf are the axes of n: an attribute in older versions, the input i in newer
// ones. given is false where n has none; count is their number where it is known,
// also of an input whose payload is not at hand.
func (f *inference) axesOf(n *ir.Node, i int) (axes []int64, count int, given bool) {
	if a := n.Attr("axes"); a != nil {
		if a.Ref != "" {
			return nil, -1, true
		}
		return a.Ints, len(a.Ints), true
	}
	v := n.Input(i)
	if v == nil {
		return nil, 0, false
	}
	if is, ok := f.ints(v); ok {
		return is, len(is), true
	}
	if s, ok := f.shape(v); ok && len(s) == 1 && s[0].Known() && s[0].N <= maxElems {
		return nil, int(s[0].N), true
	}
	return nil, -1, true
}

func reduce(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	if !ok {
		return nil, false
	}
	keep, ok := attrInt(n, "keepdims", 1)
	noop, ok2 := attrInt(n, "noop_with_empty_axes", 0)
	if !ok || !ok2 {
		return nil, false
	}
	axes, count, _ := f.axesOf(n, 1)
	switch {
	case count == 0 && noop != 0:
		return s, true
	// Axes that are not known, but kept: the rank is that of the input.
	case keep != 0 && count != 0 && axes == nil:
		return unknown(len(s)), true
	case count == 0 && keep != 0:
		return without(s, allAxes(len(s)), true)
	case count == 0:
		return []ir.Dim{}, true
	case axes == nil:
		return unknown(max(len(s)-count, 0)), count > 0 && count <= len(s)
	}
	return without(s, axes, keep != 0)
}

func reduceOne(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	keep, ok2 := attrInt(n, "keepdims", 1)
	a, ok3 := attrInt(n, "axis", 0)
	if !ok || !ok2 || !ok3 {
		return nil, false
	}
	return without(s, []int64{a}, keep != 0)
}

func allAxes(rank int) []int64 {
	as := make([]int64, rank)
	for i := range as {
		as[i] = int64(i)
	}
	return as
}

// without is s with axes gone, or of size 1 where keep is set.
func without(s []ir.Dim, axes []int64, keep bool) ([]ir.Dim, bool) {
	gone := make([]bool, len(s))
	for _, a := range axes {
		i, ok := axis(a, len(s))
		if !ok || gone[i] {
			return nil, false
		}
		gone[i] = true
	}
	out := []ir.Dim{}
	for i, d := range s {
		switch {
		case !gone[i]:
			out = append(out, d)
		case keep:
			out = append(out, ir.Dim{N: 1})
		}
	}
	return out, true
}

func squeeze(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	if !ok {
		return nil, false
	}
	axes, count, given := f.axesOf(n, 1)
	switch {
	case !given:
		return squeezeAll(s)
	case axes != nil:
		return without(s, axes, false)
	}
	return unknown(max(len(s)-count, 0)), count > 0 && count <= len(s)
}

// squeezeAll drops every axis of size 1, which takes knowing all sizes.
func squeezeAll(s []ir.Dim) ([]ir.Dim, bool) {
	out := []ir.Dim{}
	for _, d := range s {
		if !d.Known() {
			return nil, false
		}
		if d.N != 1 {
			out = append(out, d)
		}
	}
	return out, true
}

func unsqueeze(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	axes, count, given := f.axesOf(n, 1)
	if !ok || !given || count < 0 {
		return nil, false
	}
	out := unknown(len(s) + count)
	if axes == nil {
		return out, true
	}
	added := make([]bool, len(out))
	for _, a := range axes {
		i, ok := axis(a, len(out))
		if !ok || added[i] {
			return nil, false
		}
		added[i] = true
	}
	for i := range out {
		if added[i] {
			out[i] = ir.Dim{N: 1}
			continue
		}
		out[i], s = s[0], s[1:]
	}
	return out, true
}

func gather(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	q, ok2 := f.shape(n.Input(1))
	a, ok3 := attrInt(n, "axis", 0)
	if !ok || !ok2 || !ok3 {
		return nil, false
	}
	i, ok := axis(a, len(s))
	if !ok {
		return nil, false
	}
	out := append([]ir.Dim{}, s[:i]...)
	return append(append(out, q...), s[i+1:]...), true
}

func oneHot(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	return unknown(len(s) + 1), ok
}

func concat(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	for _, v := range n.Inputs() {
		s, ok := f.shape(v)
		if !ok {
			continue
		}
		out := append([]ir.Dim{}, s...)
		a, ok := attrInt(n, "axis", 1)
		i, inside := axis(a, len(s))
		if !ok || !inside {
			return unknown(len(s)), true
		}
		out[i] = f.sum(n, i)
		return out, true
	}
	return nil, false
}

// sum is the size of n's inputs together along an axis.
func (f *inference) sum(n *ir.Node, axis int) ir.Dim {
	total := ir.Dim{}
	for _, v := range n.Inputs() {
		s, ok := f.shape(v)
		if !ok || axis >= len(s) || !s[axis].Known() {
			return ir.Dim{N: -1}
		}
		total.N += s[axis].N
	}
	return total
}
