package opset

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// flatten is a matrix: the axes before the attribute axis, and the others.
func flatten(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	out := unknown(2)
	s, ok := f.shape(n.Input(0))
	a, ok2 := attrInt(n, "axis", 1)
	if a < 0 {
		a += int64(len(s))
	}
	if !ok || !ok2 || a < 0 || a > int64(len(s)) {
		return out, true
	}
	for i, part := range [][]ir.Dim{s[:a], s[a:]} {
		if size, ok := product(part); ok {
			out[i].N = size
		}
	}
	return out, true
}

// blockShape is DepthToSpace's shape, or with sign -1 that of SpaceToDepth.
func blockShape(sign int) shapeRule {
	return func(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
		s, ok := f.shape(n.Input(0))
		b, ok2 := attrInt(n, "blocksize", 0)
		if !ok || !ok2 || len(s) != 4 || b < 1 {
			return unknown(len(s)), ok
		}
		times := []int64{1, -b * b, b, b}
		out := append([]ir.Dim{}, s...)
		for i := 1; i < 4; i++ {
			out[i] = scaled(s[i], times[i]*int64(sign))
		}
		return out, true
	}
}

// scaled is d times k, or divided by -k.
func scaled(d ir.Dim, k int64) ir.Dim {
	switch {
	case !d.Known():
		return ir.Dim{N: -1}
	case k > 0:
		return ir.Dim{N: d.N * k}
	case d.N%-k == 0:
		return ir.Dim{N: d.N / -k}
	}
	return ir.Dim{N: -1}
}

func pad(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, pads, axes, ok := f.padded(n)
	if !ok {
		return unknown(len(s)), s != nil
	}
	out := slices.Clone(s)
	for i, at := range axes {
		if s[at].Known() {
			out[at] = ir.Dim{N: s[at].N + pads[i] + pads[i+len(axes)]}
		}
	}
	return out, true
}

// padded is the shape of Pad's input, nil if that is unknown, with the axes to pad, and pads before and after each.
func (f *inference) padded(n *ir.Node) (shape []ir.Dim, pads []int64, axes []int, ok bool) {
	shape, ok = f.shape(n.Input(0))
	pads, ok2 := f.listOf(n, "pads", 1)
	given, ok3 := f.ints(n.Input(3))
	if n.Input(3) == nil {
		given, ok3 = allAxes(len(shape)), true
	}
	if !ok || !ok2 || !ok3 || len(pads) != 2*len(given) {
		return shape, nil, nil, false
	}
	for _, a := range given {
		at, inside := axis(a, len(shape))
		if !inside {
			return shape, nil, nil, false
		}
		axes = append(axes, at)
	}
	return shape, pads, axes, true
}

// resizeShape multiplies sizes by constant scales, or replaces them.
func resizeShape(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	out := unknown(len(s))
	if !ok || n.Attr("axes") != nil || n.Attr("keep_aspect_ratio_policy") != nil {
		return out, ok
	}
	if sizes, ok := f.ints(n.Input(3)); ok && len(sizes) == len(s) {
		return dims(sizes), true
	}
	for i, scale := range f.scales(n) {
		if i < len(s) && s[i].Known() {
			out[i] = ir.Dim{N: int64(math.Floor(float64(s[i].N) * scale))}
		}
	}
	return out, true
}

// scales are those of Resize and Upsample, nil if unknown.
func (f *inference) scales(n *ir.Node) []float64 {
	// Input 2 of Resize since opset 11, input 1 before and of Upsample.
	for _, i := range []int{2, 1} {
		if v := n.Input(i); v != nil && v.Const != nil {
			if xs, ok := constFloats(v); ok && len(xs) > 0 {
				return xs
			}
		}
	}
	var xs []float64
	if a := n.Attr("scales"); a != nil {
		for _, x := range a.Floats {
			xs = append(xs, float64(x))
		}
	}
	return xs
}

// split cuts an axis into parts of given sizes, or of one size.
func split(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	at, inside := axis(n.Int("axis", 0), len(s))
	if !ok || !inside {
		return unknown(len(s)), ok
	}
	out := append([]ir.Dim{}, s...)
	out[at] = ir.Dim{N: -1}
	sizes, known := f.listOf(n, "split", 1)
	switch {
	case known && i < len(sizes):
		out[at].N = sizes[i]
	// Before opset 18 the parts are equal; since then the last one has what is left.
	case known && sizes == nil && s[at].Known() && n.Graph().Opset("") < 18:
		out[at] = scaled(s[at], -int64(len(n.Outputs)))
	case known && sizes == nil && s[at].Known():
		each := (s[at].N + int64(len(n.Outputs)) - 1) / int64(len(n.Outputs))
		out[at].N = max(0, min(each, s[at].N-int64(i)*each))
	}
	return out, true
}

func tile(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	times, ok2 := f.ints(n.Input(1))
	out := unknown(len(s))
	if !ok || !ok2 || len(times) != len(s) {
		return out, ok
	}
	for i, k := range times {
		if k > 0 {
			out[i] = scaled(s[i], k)
		}
	}
	return out, true
}

func topK(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	at, inside := axis(n.Int("axis", -1), len(s))
	if !ok || !inside {
		return unknown(len(s)), ok
	}
	out := append([]ir.Dim{}, s...)
	out[at] = ir.Dim{N: n.Int("k", -1)}
	if k, ok := f.ints(n.Input(1)); ok && len(k) == 1 {
		out[at].N = k[0]
	}
	return out, true
}

func rangeShape(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	if f.sizes == nil {
		return unknown(1), true
	}
	if _, _, count, ok := f.rangeOf(n); ok {
		return dims([]int64{int64(count)}), true
	}
	return unknown(1), true
}

// branches keeps the sizes that the outputs of both branches have.
func branches(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	var out []ir.Dim
	for g := range n.Subgraphs() {
		if i >= len(g.Outputs) {
			return nil, false
		}
		s, ok := f.shape(g.Outputs[i])
		if !ok {
			return nil, false
		}
		if out == nil {
			out = s
		}
		if out = common(out, s); out == nil {
			return nil, false
		}
	}
	return out, out != nil
}
