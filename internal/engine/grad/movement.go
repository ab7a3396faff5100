package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// movement are operators that move elements to positions given by shapes and attributes.
var movement = []rule{
	{Type: "Reshape", Backward: reshapeGradient},
	{Type: "Flatten", Backward: reshapeGradient},
	{Type: "Squeeze", Backward: reshapeGradient},
	{Type: "Unsqueeze", Backward: reshapeGradient},
	{Type: "Transpose", Backward: transpose},
	{Type: "Concat", Backward: concat},
	{Type: "Split", Backward: split},
	{Type: "Expand", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{sumToOperand(t, n, 0, dy[0])}, nil
	}},
	{Type: "Tile", Backward: tile},
	{Type: "Resize", Backward: resize},
	{Type: "Upsample", Backward: resize},
	{Type: "DepthToSpace", Backward: depthToSpace},
	{Type: "SpaceToDepth", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{t.Op("DepthToSpace", dy[:1], n.Attrs...)}, nil
	}},
	{Type: "Trilu", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{t.Op("Trilu", []*ir.Value{dy[0], n.Input(1)}, n.Attrs...)}, nil
	}},
	{Type: "CumSum", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		exclusive, reverse := n.Int("exclusive", 0), n.Int("reverse", 0)
		return []*ir.Value{t.Op("CumSum", []*ir.Value{dy[0], n.Input(1)}, ir.IntAttr("exclusive", exclusive),
			ir.IntAttr("reverse", 1-reverse))}, nil
	}},
}

// reshapeGradient is the gradient of operators that only change the shape.
func reshapeGradient(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	return []*ir.Value{t.Reshape(dy[0], t.Shape(n.Input(0)))}, nil
}

func transpose(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	return []*ir.Value{t.Transpose(dy[0], inverse(permOf(n, len(t.Shape(n.Input(0))))))}, nil
}

// permOf returns the permutation of a Transpose.
func permOf(n *ir.Node, rank int) []int64 {
	if a := n.Attr("perm"); a != nil {
		return a.Ints
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(rank - 1 - i)
	}
	return perm
}

func inverse(perm []int64) []int64 {
	back := make([]int64, len(perm))
	for i, p := range perm {
		back[p] = int64(i)
	}
	return back
}

// concat: the gradient is split.
func concat(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	axis := fromFront(n.Int("axis", 1), len(t.Shape(n.Outputs[0])))
	sizes := make([]int64, len(n.Inputs()))
	for i, v := range n.Inputs() {
		sizes[i] = t.Shape(v)[axis]
	}
	return t.add(ir.OpID{Domain: newest, Type: "Split"}, len(sizes), []*ir.Value{dy[0], t.Ints(sizes...)},
		[]*ir.Attr{ir.IntAttr("axis", axis)}), nil
}

func fromFront(axis int64, rank int) int64 {
	if axis < 0 {
		axis += int64(rank)
	}
	return axis
}

// split: gradients are concatenated, with zeros for unused parts.
func split(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	x := n.Input(0)
	axis, rest := fromFront(n.Int("axis", 0), len(t.Shape(x))), t.Shape(x)
	size := rest[axis]
	var parts []*ir.Value
	for i, v := range n.Outputs {
		if v == nil {
			return nil, errUnknownForm
		}
		if dy[i] == nil {
			dy[i] = t.Zeros(t.DType(x), t.Shape(v))
		}
		size -= t.Shape(v)[axis]
		parts = append(parts, dy[i])
	}
	if size != 0 {
		return nil, errUnknownForm
	}
	return []*ir.Value{t.Op("Concat", parts, ir.IntAttr("axis", axis))}, nil
}

// tile: repeated elements are summed; each axis of n·d elements is one of n and one of d.
func tile(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	x, y := t.Shape(n.Input(0)), t.Shape(n.Outputs[0])
	var split, axes []int64
	for i, d := range x {
		axes = append(axes, int64(len(split)))
		split = append(split, y[i]/max(d, 1), d)
	}
	if len(axes) == 0 {
		return dy[:1], nil
	}
	v := t.Reshape(dy[0], split)
	return []*ir.Value{t.Op("ReduceSum", []*ir.Value{v, t.Ints(axes...)}, ir.IntAttr("keepdims", 0))}, nil
}

// resize: repeated elements are summed, for nearest neighbours at integer factors; each axis of d·n elements is one of
// d and one of n.
func resize(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	x, y := t.Shape(n.Input(0)), t.Shape(n.Outputs[0])
	from, round := "asymmetric", "floor"
	if n.Op.Type == "Resize" && (n.Op.Domain == newest || n.Graph().Opset("") >= 11) {
		from, round = text(n, "coordinate_transformation_mode", "half_pixel"),
			text(n, "nearest_mode", "round_prefer_floor")
	}
	// At integer factors these modes repeat each element equally often; the factors are checked below.
	whole := from == "asymmetric" && round == "floor" || from == "half_pixel" &&
		(round == "round_prefer_floor" || round == "round_prefer_ceil")
	if !whole || text(n, "mode", "nearest") != "nearest" {
		return nil, errUnknownForm
	}
	var split, axes []int64
	for i, d := range x {
		if d == 0 || y[i]%d != 0 {
			return nil, errUnknownForm
		}
		axes = append(axes, int64(len(split)+1))
		split = append(split, d, y[i]/d)
	}
	v := t.Reshape(dy[0], split)
	return []*ir.Value{t.Op("ReduceSum", []*ir.Value{v, t.Ints(axes...)}, ir.IntAttr("keepdims", 0))}, nil
}

// text returns a string attribute of n, or def.
func text(n *ir.Node, name, def string) string {
	if a := n.Attr(name); a != nil {
		return a.S
	}
	return def
}

// depthToSpace reverses the blocks: [N,C,H,b,W,b] with the axes of blocks first, or last in mode CRD.
func depthToSpace(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	b, x := n.Int("blocksize", 1), t.Shape(n.Input(0))
	if len(x) != 4 || text(n, "mode", "DCR") != "CRD" {
		return []*ir.Value{t.Op("SpaceToDepth", dy[:1], ir.IntAttr("blocksize", b))}, nil
	}
	// ONNX's SpaceToDepth has the order of DCR only.
	v := t.Reshape(dy[0], []int64{x[0], x[1] / (b * b), x[2], b, x[3], b})
	return []*ir.Value{t.Reshape(t.Transpose(v, []int64{0, 1, 3, 5, 2, 4}), slices.Clone(x))}, nil
}
