package opset

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A requirement is a condition on a size for a node to run.
type requirement struct {
	size, want ir.Dim
	is         relation
}

type relation uint8

const (
	isEqual     relation = iota
	isAtLeast            // size ≥ want
	isMultiple           // by want
	isBroadcast          // isEqual, or one of them is 1
)

// holds is also true of sizes that are not known.
func (r requirement) holds() bool {
	if !r.size.Known() || !r.want.Known() {
		return true
	}
	have, want := r.size.N, r.want.N
	switch r.is {
	case isAtLeast:
		return have >= want
	case isMultiple:
		return want == 0 || have%want == 0
	case isBroadcast:
		return have == want || have == 1 || want == 1
	}
	return have == want
}

// requirements are those of n. Their number and order do not depend on sizes, only on ranks.
func (f *inference) requirements(n *ir.Node) []requirement {
	facts := operator.Of(n)
	var list []requirement
	for _, in := range facts.Inputs {
		list = append(list, f.parameter(n, in)...)
	}
	// Before opset 7 broadcasting was by an attribute.
	if facts.Elementwise == operator.Broadcasts && (n.Graph().Opset("") >= 7 || !ir.DefaultDomain(n.Op.Domain)) {
		list = append(list, f.broadcasts(n.Inputs())...)
	}
	if facts.Attention {
		list = append(list, f.attends(n)...)
	}
	if rule := requirementRule(operator.Name(n.Op)); rule != nil {
		list = append(list, rule(f, n)...)
	}
	return list
}

// requirementRule is nil for operators whose requirements follow from their facts, or that have none.
func requirementRule(op string) func(f *inference, n *ir.Node) []requirement {
	switch op {
	case "AveragePool", "LpPool", "MaxPool":
		return poolRequirements
	case "Concat":
		return concatRequirements
	case "Expand":
		return expandRequirements
	case "Gather":
		return gatherRequirements
	case "Pad":
		return padRequirements
	case "Reshape":
		return reshapeRequirements
	case "Scan":
		return scanRequirements
	case "Loop":
		return loopRequirements
	case "Split":
		return splitRequirements
	case "Squeeze":
		return squeezeRequirements
	case "DepthToSpace", "SpaceToDepth":
		return blockRequirements
	case "STFT":
		return stftRequirements
	case "com.microsoft.Attention":
		return selfAttends
	case "com.microsoft.MatMulNBits":
		return func(f *inference, n *ir.Node) []requirement { return f.last(n, n.Int("K", -1), isEqual) }
	}
	return tableRequirement(op)
}

// parameter is the requirement of one parameter on the first input.
func (f *inference) parameter(n *ir.Node, in operator.Input) []requirement {
	w, ok := f.shape(n.Input(in.Index))
	x, ok2 := f.shape(n.Input(0))
	if !ok || !ok2 || in.Index == 0 || len(x) == 0 {
		return nil
	}
	switch in.Role {
	case operator.Matrix:
		return f.factors(n, in, x, w)
	case operator.Filter:
		return f.filtered(n, x, w)
	case operator.Gates:
		if in.Index == 1 && len(x) == 3 && len(w) == 3 {
			return []requirement{{size: x[2], want: w[2]}}
		}
	case operator.Gain:
		if len(operator.Of(n).With(operator.Table)) == 0 {
			return normalized(n, x, w)
		}
	}
	return nil
}

// factors are the inner sizes of a matrix product, and its batches.
func (f *inference) factors(n *ir.Node, in operator.Input, x, w []ir.Dim) []requirement {
	axes, ok := in.Axes(n, len(w))
	if !ok || len(axes.Reduction) != 1 || len(axes.Batch) > 0 && len(axes.Batch) != len(w)-2 ||
		len(w) > 2 && len(axes.Batch) == 0 {
		return nil
	}
	// The last axis, unless the operator transposes its first input.
	inner := len(x) - 1
	if left, ok := operator.Of(n).Input(0).Axes(n, len(x)); ok && len(left.Reduction) == 1 {
		inner = left.Reduction[0]
	}
	list := []requirement{{size: x[inner], want: w[axes.Reduction[0]]}}
	if len(x) > 2 && len(w) > 2 {
		list = append(list, aligned(x[:len(x)-2], w[:len(w)-2])...)
	}
	return list
}

// filtered are the channels of a convolution, and windows that fit into the padded input.
func (f *inference) filtered(n *ir.Node, x, w []ir.Dim) []requirement {
	if len(x) != len(w) || len(x) < 3 {
		return nil
	}
	if n.Op.Type == "ConvTranspose" {
		return []requirement{{size: x[1], want: w[0]}}
	}
	return append([]requirement{{size: x[1], want: scaled(w[1], max(1, n.Int("group", 1)))}}, fits(n, x[2:], w[2:])...)
}

func poolRequirements(f *inference, n *ir.Node) []requirement {
	x, ok := f.shape(n.Input(0))
	if !ok || len(x) < 3 {
		return nil
	}
	return fits(n, x[2:], kernelShape(n, len(x)-2))
}

// fits requires that a window fits into each of the padded axes.
func fits(n *ir.Node, in, window []ir.Dim) []requirement {
	dilations, ok := perAxis(n, "dilations", len(in), 1)
	pads, ok2 := perAxis(n, "pads", 2*len(in), 0)
	if !ok || !ok2 || len(window) != len(in) {
		return nil
	}
	// SAME pads as much as the window needs.
	if a := n.Attr("auto_pad"); a != nil && (a.S == "SAME_UPPER" || a.S == "SAME_LOWER") {
		return nil
	}
	var list []requirement
	for i, d := range in {
		if window[i].Known() {
			reach := (window[i].N-1)*dilations[i] + 1
			list = append(list, requirement{plus(d, ir.Dim{N: pads[i] + pads[len(in)+i]}), ir.Dim{N: reach}, isAtLeast})
		}
	}
	return list
}

// padRequirements requires axes longer than what is reflected of them: ONNX Runtime reflects an axis once.
func padRequirements(f *inference, n *ir.Node) []requirement {
	s, pads, axes, ok := f.padded(n)
	if mode := n.Attr("mode"); !ok || mode == nil || mode.S != "reflect" {
		return nil
	}
	var list []requirement
	for i, at := range axes {
		list = append(list, requirement{s[at], ir.Dim{N: 1 + max(0, pads[i], pads[i+len(axes)])}, isAtLeast})
	}
	return list
}

// stftRequirements requires a signal of at least one frame, whose length is that of the window.
func stftRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := f.shape(n.Input(0))
	if !ok || len(s) < 2 {
		return nil
	}
	if w, ok := f.shape(n.Input(2)); ok && len(w) == 1 {
		return []requirement{{s[1], w[0], isAtLeast}}
	}
	if frame, ok := f.ints(n.Input(3)); ok && len(frame) == 1 {
		return []requirement{{s[1], ir.Dim{N: frame[0]}, isAtLeast}}
	}
	return nil
}

// normalized is the number of channels, or of elements of the last axis, that a normalization scales.
func normalized(n *ir.Node, x, gain []ir.Dim) []requirement {
	switch {
	case len(gain) != 1:
		return nil
	case operator.Of(n).Spatial && len(x) > 1:
		if n.Op.Type == "GroupNormalization" {
			return []requirement{{x[1], gain[0], isMultiple}}
		}
		return []requirement{{size: x[1], want: gain[0]}}
	case operator.Of(n).Spatial:
		return nil
	}
	return []requirement{{x[len(x)-1], gain[0], isBroadcast}}
}

// broadcasts requires that the inputs broadcast.
func (f *inference) broadcasts(inputs []*ir.Value) []requirement {
	var list []requirement
	var all []ir.Dim
	for i, v := range inputs {
		s, ok := f.shape(v)
		if !ok {
			return nil
		}
		if i > 0 {
			list = append(list, aligned(all, s)...)
		}
		all = Broadcast(all, s)
	}
	return list
}

// aligned requires that two shapes broadcast.
func aligned(a, b []ir.Dim) []requirement {
	var list []requirement
	for i := 1; i <= min(len(a), len(b)); i++ {
		list = append(list, requirement{a[len(a)-i], b[len(b)-i], isBroadcast})
	}
	return list
}

func expandRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := f.shape(n.Input(0))
	to, ok2 := f.ints(n.Input(1))
	if !ok || !ok2 {
		return nil
	}
	return aligned(s, dims(to))
}

// concatRequirements requires equal sizes of the other axes.
func concatRequirements(f *inference, n *ir.Node) []requirement {
	var list []requirement
	var first []ir.Dim
	for _, v := range n.Inputs() {
		s, ok := f.shape(v)
		at, inside := axis(n.Int("axis", 1), len(s))
		if !ok || !inside || first != nil && len(first) != len(s) {
			return list
		}
		for i := range first {
			if i != at {
				list = append(list, requirement{size: s[i], want: first[i]})
			}
		}
		if first == nil {
			first = s
		}
	}
	return list
}

// gatherRequirements requires that constant positions are inside of the axis.
func gatherRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := f.shape(n.Input(0))
	at, inside := axis(n.Int("axis", 0), len(s))
	if !ok || !inside || n.Input(1) == nil || n.Input(1).Const == nil {
		return nil
	}
	is, ok := n.Input(1).Ints()
	if !ok || len(is) == 0 {
		return nil
	}
	return []requirement{{s[at], ir.Dim{N: max(slices.Max(is)+1, -slices.Min(is))}, isAtLeast}}
}

// reshapeRequirements requires the number of elements of the target shape.
func reshapeRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := f.shape(n.Input(0))
	to, ok2 := f.ints(n.Input(1))
	have, ok3 := product(s)
	if a := n.Attr("shape"); a != nil {
		to, ok2 = a.Ints, true
	}
	if !ok || !ok2 || !ok3 {
		return nil
	}
	r := requirement{size: ir.Dim{N: have}, want: ir.Dim{N: 1}}
	for i, size := range to {
		switch {
		// One size is inferred: the number of elements has to be a multiple of the others.
		case size < 0:
			r.is = isMultiple
		case size == 0 && n.Int("allowzero", 0) == 0 && i < len(s):
			r.want = times(r.want, s[i])
		default:
			r.want.N *= size
		}
	}
	return []requirement{r}
}

// splitRequirements requires parts of the given sizes, or of one size.
func splitRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := f.shape(n.Input(0))
	at, inside := axis(n.Int("axis", 0), len(s))
	sizes, ok2 := f.listOf(n, "split", 1)
	if !ok || !inside || !ok2 {
		return nil
	}
	total := int64(0)
	for _, size := range sizes {
		total += size
	}
	switch {
	case sizes != nil:
		return []requirement{{size: s[at], want: ir.Dim{N: total}}}
	case n.Int("num_outputs", 0) > 0:
		return []requirement{{s[at], ir.Dim{N: int64(len(n.Outputs))}, isAtLeast}}
	}
	return []requirement{{s[at], ir.Dim{N: int64(len(n.Outputs))}, isMultiple}}
}

func squeezeRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := f.shape(n.Input(0))
	axes, _, given := f.axesOf(n, 1)
	if !ok || !given {
		return nil
	}
	var list []requirement
	for _, a := range axes {
		if at, inside := axis(a, len(s)); inside {
			list = append(list, requirement{size: s[at], want: ir.Dim{N: 1}})
		}
	}
	return list
}

// blockRequirements requires axes that divide into blocks.
func blockRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := f.shape(n.Input(0))
	b := n.Int("blocksize", 0)
	if !ok || len(s) != 4 || b < 1 {
		return nil
	}
	if n.Op.Type == "DepthToSpace" {
		return []requirement{{s[1], ir.Dim{N: b * b}, isMultiple}}
	}
	return []requirement{{s[2], ir.Dim{N: b}, isMultiple}, {s[3], ir.Dim{N: b}, isMultiple}}
}

// last is a requirement on the size of the last axis of the first input.
func (f *inference) last(n *ir.Node, want int64, is relation) []requirement {
	s, ok := f.shape(n.Input(0))
	if !ok || len(s) == 0 || want < 0 {
		return nil
	}
	return []requirement{{s[len(s)-1], ir.Dim{N: want}, is}}
}
