package grad

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// indexRules are operators that move elements to positions given by inputs.
var indexRules = []rule{
	{Type: "Slice", Backward: slice},
	{Type: "Crop", Backward: crop},
	{Type: "Pad", Backward: pad},
	{Type: "Gather", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{gatherGradient(t, n.Input(1), dy[0], n.Int("axis", 0), t.Shape(n.Input(0)))}, nil
	}},
	{Type: "GatherElements", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return scatterGradient(t, n.Input(0), "ScatterElements", n.Input(1), dy[0],
			ir.IntAttr("axis", n.Int("axis", 0))), nil
	}},
	{Type: "GatherND", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		if n.Int("batch_dims", 0) != 0 {
			return nil, errUnknownForm
		}
		return scatterGradient(t, n.Input(0), "ScatterND", n.Input(1), dy[0]), nil
	}},
	{Type: "TopK", Forward: keepIndices, Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		if dy[0] == nil {
			return nil, nil
		}
		return scatterGradient(t, n.Input(0), "ScatterElements", n.Outputs[1], dy[0],
			ir.IntAttr("axis", n.Int("axis", -1))), nil
	}},
	{Type: "Scatter", Backward: scatter("GatherElements")},
	{Type: "ScatterElements", Backward: scatter("GatherElements")},
	{Type: "ScatterND", Backward: scatter("GatherND")},
}

// gatherGradient sums the gradient of gathered elements along an axis of a tensor of that shape.
func gatherGradient(t *Tape, indices, dy *ir.Value, axis int64, shape []int64) *ir.Value {
	return t.Own("GatherGrad", 1, []*ir.Value{indices, dy}, ir.IntAttr("axis", axis),
		ir.IntsAttr("shape", slices.Clone(shape)...))[0]
}

// scatterGradient adds dy to zeros of the shape of x.
func scatterGradient(t *Tape, x *ir.Value, typ string, indices, dy *ir.Value, attrs ...*ir.Attr) []*ir.Value {
	zeros := t.Zeros(t.DType(x), t.Shape(x))
	return []*ir.Value{t.Op(typ, []*ir.Value{zeros, indices, dy}, append(attrs, ir.StringAttr("reduction", "add"))...)}
}

// scatter: overwritten elements have no gradient; elements of a sum have. Duplicate indices are undefined without a
// reduction (ONNX operator ScatterElements).
func scatter(gather string) gradient {
	return func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		var attrs []*ir.Attr
		if a := n.Attr("axis"); a != nil {
			attrs = append(attrs, a)
		}
		dx := make([]*ir.Value, 3)
		switch reduction := text(n, "reduction", "none"); reduction {
		case "none":
			zeros := t.Zeros(t.DType(n.Input(2)), t.Shape(n.Input(2)))
			dx[0] = t.Op("Scatter"+gather[len("Gather"):], []*ir.Value{dy[0], n.Input(1), zeros}, attrs...)
		case "add":
			dx[0] = dy[0]
		default:
			return nil, fmt.Errorf("the gradient of reduction %q is not supported", reduction)
		}
		dx[2] = t.Op(gather, []*ir.Value{dy[0], n.Input(1)}, attrs...)
		return dx, nil
	}
}

// keepIndices adds the output of indices to TopK.
func keepIndices(t *Tape, n *ir.Node) error {
	if len(n.Outputs) == 2 && n.Outputs[1] != nil {
		return nil
	}
	places := t.Graph().NewValue("places")
	t.SetType(places, ir.Int64, t.Shape(n.Outputs[0])...)
	n.SetOutputs(n.Outputs[0], places)
	return nil
}

// A sliceRange is the part of an axis that Slice selects.
type sliceRange struct{ start, step, n int64 }

// slice pads the gradient with zeros, also between its elements if steps are not 1.
func slice(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	cuts, err := sliceRanges(t, n)
	if err != nil {
		return nil, err
	}
	x, shape := t.Shape(n.Input(0)), slices.Clone(t.Shape(n.Outputs[0]))
	before, after, dx := make([]int64, len(x)), make([]int64, len(x)), dy[0]
	for i, c := range cuts {
		if c.step == 1 || c.n == 0 {
			before[i], after[i] = c.start, x[i]-c.start-c.n
			continue
		}
		// Axis by axis: the gradient has the size of the input along the axes before i, and of the output along those
		// after.
		shape[i] = x[i]
		dx = gatherGradient(t, t.Ints(progression(c)...), dx, int64(i), shape)
	}
	return []*ir.Value{padZeros(t, dx, before, after)}, nil
}

func progression(c sliceRange) []int64 {
	places := make([]int64, c.n)
	for i := range places {
		places[i] = c.start + int64(i)*c.step
	}
	return places
}

// padZeros pads v with zeros, or crops it where numbers are negative.
func padZeros(t *Tape, v *ir.Value, before, after []int64) *ir.Value {
	all := slices.Concat(before, after)
	if !slices.ContainsFunc(all, func(n int64) bool { return n != 0 }) {
		return v
	}
	return t.Op("Pad", []*ir.Value{v, t.Ints(all...)})
}

// sliceRanges returns the range of each axis. Ends outside the axis follow from the shape of the result.
func sliceRanges(t *Tape, n *ir.Node) ([]sliceRange, error) {
	x, y := t.Shape(n.Input(0)), t.Shape(n.Outputs[0])
	var lists [3][]int64
	for i, at := range []int{1, 3, 4} {
		name := []string{"starts", "axes", "steps"}[i]
		is, _, known := t.elements.list(n, name, at)
		if !known {
			return nil, fmt.Errorf("%s depending on data are not supported", name)
		}
		lists[i] = is
	}
	out := make([]sliceRange, len(x))
	for i := range x {
		out[i] = sliceRange{0, 1, y[i]}
	}
	for i, start := range lists[0] {
		axis, step := int64(i), int64(1)
		if lists[1] != nil {
			axis = fromFront(lists[1][i], len(x))
		}
		if lists[2] != nil {
			step = lists[2][i]
		}
		if start < 0 {
			start += x[axis]
		}
		last := x[axis]
		if step < 0 {
			// As specified for Slice: with a negative step the start is at most the last element, else the end of the
			// axis.
			last--
		}
		out[axis] = sliceRange{min(max(start, 0), last), step, y[axis]}
	}
	return out, nil
}

// crop is the gradient of an operator of the first opsets that removes a border.
func crop(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	b := n.Attr("border")
	if b == nil || len(b.Ints) != 4 || n.Attr("scale") != nil {
		return nil, errUnknownForm
	}
	left, top, right, bottom := b.Ints[0], b.Ints[1], b.Ints[2], b.Ints[3]
	return []*ir.Value{padZeros(t, dy[0], []int64{0, 0, top, left}, []int64{0, 0, bottom, right})}, nil
}

// pad crops the border. In the modes that repeat elements it is a Gather along each axis.
func pad(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	if t.Needs(n.Input(2)) {
		return nil, errUnknownForm
	}
	x, y := t.Shape(n.Input(0)), slices.Clone(t.Shape(n.Outputs[0]))
	before, err := padStarts(t, n)
	if err != nil {
		return nil, err
	}
	mode, dx := text(n, "mode", "constant"), dy[0]
	after := make([]int64, len(x))
	for i := range x {
		after[i] = y[i] - x[i] - before[i]
	}
	if mode == "constant" {
		for i := range x {
			before[i], after[i] = -before[i], -after[i]
		}
		return []*ir.Value{padZeros(t, dx, before, after)}, nil
	}
	for i := range x {
		if before[i] == 0 && after[i] == 0 {
			continue
		}
		y[i] = x[i]
		dx = gatherGradient(t, t.Ints(copyIndices(mode, before[i], x[i], before[i]+x[i]+after[i])...), dx, int64(i), y)
	}
	return []*ir.Value{dx}, nil
}

// padStarts returns the pads before each axis.
func padStarts(t *Tape, n *ir.Node) ([]int64, error) {
	pads, _, known := t.elements.list(n, "pads", 1)
	axes, chosen, knownAxes := t.elements.list(n, "axes", 3)
	if !known || !knownAxes {
		return nil, fmt.Errorf("pads depending on data are not supported")
	}
	if a := n.Attr("paddings"); a != nil {
		pads = a.Ints
	}
	before := make([]int64, len(t.Shape(n.Input(0))))
	for i := range len(pads) / 2 {
		axis := int64(i)
		if chosen {
			axis = fromFront(axes[i], len(before))
		}
		before[axis] = pads[i]
	}
	return before, nil
}

// copyIndices returns the indices in an axis of that size from which elements are copied, with before elements
// before the axis.
func copyIndices(mode string, before, size, count int64) []int64 {
	places := make([]int64, count)
	for i := range places {
		p := int64(i) - before
		switch period := 2 * (size - 1); {
		case mode == "edge":
			p = min(max(p, 0), size-1)
		case mode == "wrap":
			p = (p%size + size) % size
		case period == 0:
			p = 0
		default: // reflect
			// The edge is not repeated: forth and back are 2(size-1) elements.
			p = (p%period + period) % period
			p = min(p, period-p)
		}
		places[i] = p
	}
	return places
}
