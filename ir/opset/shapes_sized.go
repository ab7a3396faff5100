package opset

import "github.com/mcompress/mcompress/ir"

// target is the shape that input i of n holds: its sizes where the payload is at
// hand (0 and below as they stand), else only how many there are.
func (f *inference) target(n *ir.Node, i int) (sizes []int64, rank int, ok bool) {
	v := n.Input(i)
	if sizes, ok := constInts(v); ok {
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
	if rest >= 0 && inOK {
		out[rest] = remainder(in, out, rest)
	}
	return out, true
}

// remainder is the size that makes out hold as many elements as in.
func remainder(in, out []ir.Dim, at int) ir.Dim {
	have, need := int64(1), int64(1)
	for _, d := range in {
		if !d.Known() {
			return ir.Dim{N: -1}
		}
		have *= d.N
	}
	for i, d := range out {
		if i == at {
			continue
		}
		if !d.Known() {
			return ir.Dim{N: -1}
		}
		need *= d.N
	}
	if need == 0 || have%need != 0 {
		return ir.Dim{N: -1}
	}
	return ir.Dim{N: have / need}
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
	return merge(s, dims(sizes)), true
}

// spatial keeps the batch and the channels; the rest depends on padding.
func spatial(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	if !ok || len(s) < 2 {
		return nil, false
	}
	return append(append([]ir.Dim{}, s[:2]...), unknown(len(s)-2)...), true
}

// conv has the batch of the first input and a channel for each filter of the weight.
func conv(weight int) shapeRule {
	return func(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
		x, ok := f.shape(n.Input(0))
		w, ok2 := f.shape(n.Input(weight))
		if !ok && !ok2 || max(len(x), len(w)) < 2 {
			return nil, false
		}
		out := unknown(max(len(x), len(w)))
		if ok {
			out[0] = x[0]
		}
		if ok2 {
			out[1] = w[0]
		}
		return out, true
	}
}

func convTranspose(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	out, ok := conv(1)(f, n, i)
	if !ok {
		return nil, false
	}
	out[1] = ir.Dim{N: -1}
	w, ok := f.shape(n.Input(1))
	group, ok2 := attrInt(n, "group", 1)
	if ok && ok2 && w[1].Known() {
		out[1] = ir.Dim{N: w[1].N * group}
	}
	return out, true
}

// recurrent makes all states with a direction axis, and the last ones without time.
func recurrent(_ *inference, _ *ir.Node, i int) ([]ir.Dim, bool) {
	if i == 0 {
		return unknown(4), true
	}
	return unknown(3), true
}
