package conv

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// resizes are Resize and its predecessor Upsample. The defaults of attributes added after version 11 equal the earlier
// semantics.
func resizes() []op.Op {
	return []op.Op{
		resizeRow("Upsample", 7, upsampleByAttribute),
		resizeRow("Upsample", 9, upsample),
		resizeRow("Resize", 10, upsample),
		resizeRow("Resize", 11, readResize),
	}
}

// A resizing is one node's attributes and sizes for input X.
type resizePlan struct {
	mode      string // nearest, linear or cubic
	nearest   string
	transform string
	a         float32 // of the cubic kernel
	antialias bool
	exclude   bool // weights outside are excluded, and the others renormalized
	beyond    float32
	out       []int64
	scale     []float32 // by axis, 1 for unchanged axes
	roi       []float32 // starts and then ends by axis; nil for all of X
}

func resizeRow(name string, since int64, read func(n *op.Node, in []*ir.Array) (*resizePlan, error)) op.Op {
	return op.Op{
		Type: name, Since: since,
		Shape: func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			r, err := read(n, in)
			if err != nil {
				return nil, err
			}
			if err := number.Check(in[0].DType); r.mode != "nearest" && err != nil {
				return nil, fmt.Errorf("input X: %w", err)
			}
			return like(in[0], r.out...)
		},
		Work: func(n *op.Node, in []*ir.Array, _ int) int64 {
			r, err := read(n, in)
			if err != nil {
				return 0
			}
			return r.work(in[0])
		},
		Run: func(c *op.Call) error {
			r, err := read(c.Node, c.In)
			if err != nil || c.Out[0].Elems() == 0 {
				return err
			}
			if r.mode == "nearest" {
				return r.copyNearest(c)
			}
			return r.interpolate(c)
		},
	}
}

func upsampleByAttribute(n *op.Node, in []*ir.Array) (*resizePlan, error) {
	x, err := resizable(in)
	if err != nil {
		return nil, err
	}
	return simpleResizing(n, x, n.Floats("scales"))
}

func upsample(n *op.Node, in []*ir.Array) (*resizePlan, error) {
	x, err := resizable(in)
	if err != nil {
		return nil, err
	}
	scales, err := floatList(op.Opt(in, 1), "scales")
	if err != nil {
		return nil, err
	}
	return simpleResizing(n, x, scales)
}

// simpleResizing is the operator before version 11. Its nearest-neighbour rounding was not specified: it rounds down
// for upsampling and up for downsampling, as the test of Resize 10 requires.
func simpleResizing(n *op.Node, x *ir.Array, scales []float32) (*resizePlan, error) {
	r := &resizePlan{mode: n.Text("mode", "nearest"), nearest: "simple", transform: "asymmetric"}
	if r.mode == "bilinear" {
		r.mode = "linear"
	}
	if r.mode != "nearest" && r.mode != "linear" {
		return nil, fmt.Errorf("mode is %q, want nearest or linear", r.mode)
	}
	return r, r.byScales(x, scales, everyAxis(x))
}

func readResize(n *op.Node, in []*ir.Array) (*resizePlan, error) {
	x, err := resizable(in)
	if err != nil {
		return nil, err
	}
	r := &resizePlan{
		mode:      n.Text("mode", "nearest"),
		nearest:   n.Text("nearest_mode", "round_prefer_floor"),
		transform: n.Text("coordinate_transformation_mode", "half_pixel"),
		a:         n.Float("cubic_coeff_a", -0.75),
		antialias: n.Bool("antialias", false),
		exclude:   n.Bool("exclude_outside", false),
		beyond:    n.Float("extrapolation_value", 0),
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	axes, err := resizedAxes(n, x)
	if err != nil {
		return nil, err
	}
	if err := r.size(n, in, axes); err != nil {
		return nil, err
	}
	return r, r.readRoi(op.Opt(in, 1), axes)
}

func (r *resizePlan) check() error {
	if r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic" {
		return fmt.Errorf("mode is %q, want nearest, linear or cubic", r.mode)
	}
	if r.mode == "nearest" && nearestModes[r.nearest] == nil {
		return fmt.Errorf("unknown nearest_mode %q", r.nearest)
	}
	if transforms[r.transform] == nil {
		return fmt.Errorf("unknown coordinate_transformation_mode %q", r.transform)
	}
	if r.mode == "nearest" && r.antialias {
		return fmt.Errorf("antialias requires mode linear or cubic, mode is nearest")
	}
	return nil
}

// size computes the output's lengths from scales or sizes, exactly one of which is given.
func (r *resizePlan) size(n *op.Node, in []*ir.Array, axes []int) error {
	scales, sizes := given(op.Opt(in, 2)), given(op.Opt(in, 3))
	switch {
	case scales != nil && sizes != nil:
		return fmt.Errorf("inputs scales and sizes are both given, want one")
	case scales != nil:
		list, err := floatList(scales, "scales")
		if err != nil {
			return err
		}
		return r.byScales(in[0], list, axes)
	case sizes != nil:
		list, err := op.Ints(sizes)
		if err != nil {
			return err
		}
		return r.bySizes(in[0], list, axes, n.Text("keep_aspect_ratio_policy", "stretch"))
	}
	return fmt.Errorf("inputs scales and sizes are both missing, want one")
}

// given is a, or nil if it is an empty tensor, which means absent in models of version 11.
func given(a *ir.Array) *ir.Array {
	if a != nil && a.Elems() == 0 {
		return nil
	}
	return a
}

func resizable(in []*ir.Array) (*ir.Array, error) {
	x, err := op.Arg(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if x.Kind != ir.Dense {
		return nil, fmt.Errorf("input X is %s, want a tensor", x)
	}
	return x, nil
}

// floatList is a tensor of scales or regions.
func floatList(a *ir.Array, name string) ([]float32, error) {
	if a == nil {
		return nil, fmt.Errorf("input %s is missing", name)
	}
	if !op.IsKnown(a) {
		return nil, op.ErrUnknown
	}
	switch {
	case a.DType == ir.Float:
		return ir.View[float32](a), nil
	case isHalf(a.DType):
		list := make([]float32, a.Elems())
		widen(list, a)
		return list, nil
	case a.DType == ir.Double:
		list := make([]float32, a.Elems())
		for i, v := range ir.View[float64](a) {
			list[i] = float32(v)
		}
		return list, nil
	}
	return nil, fmt.Errorf("input %s is %s, want a float type", name, a)
}

func everyAxis(x *ir.Array) []int {
	axes := make([]int, len(x.Shape))
	for i := range axes {
		axes[i] = i
	}
	return axes
}

func resizedAxes(n *op.Node, x *ir.Array) ([]int, error) {
	given := n.Ints("axes")
	if len(given) == 0 {
		return everyAxis(x), nil
	}
	axes, seen := make([]int, len(given)), make([]bool, len(x.Shape))
	for i, a := range given {
		axis, err := op.Axis(a, len(x.Shape))
		if err != nil {
			return nil, err
		}
		if seen[axis] {
			return nil, fmt.Errorf("axes %v repeats axis %d", given, axis)
		}
		axes[i], seen[axis] = axis, true
	}
	return axes, nil
}

func (r *resizePlan) byScales(x *ir.Array, scales []float32, axes []int) error {
	if len(scales) != len(axes) {
		return fmt.Errorf("scales %v has %d entries, want %d", scales, len(scales), len(axes))
	}
	r.keep(x)
	for i, axis := range axes {
		s := scales[i]
		if !(s > 0) || s > math.MaxInt32 {
			return fmt.Errorf("scales has %v at %d, want more than 0", s, i)
		}
		// float32 as in ONNX Runtime: in float64 a length of some scales rounds down to another integer.
		length := float32(x.Shape[axis]) * s
		if length > most {
			return fmt.Errorf("axis %d would have size %v, more than %d", axis, length, most)
		}
		r.out[axis], r.scale[axis] = int64(length), s
	}
	return nil
}

func (r *resizePlan) bySizes(x *ir.Array, sizes []int64, axes []int, policy string) error {
	if len(sizes) != len(axes) {
		return fmt.Errorf("sizes %v has %d entries, want %d", sizes, len(sizes), len(axes))
	}
	r.keep(x)
	for i, axis := range axes {
		if sizes[i] < 0 || sizes[i] > most {
			return fmt.Errorf("sizes has %d at %d, out of range 0 to %d", sizes[i], i, most)
		}
		r.out[axis] = sizes[i]
		r.scale[axis] = float32(sizes[i]) / float32(x.Shape[axis])
	}
	if policy == "stretch" || len(axes) == 0 {
		return nil
	}
	return r.keepAspect(x, axes, policy)
}

// keepAspect uses one scale for all axes.
func (r *resizePlan) keepAspect(x *ir.Array, axes []int, policy string) error {
	ratio := func(axis int) float64 { return float64(r.out[axis]) / float64(x.Shape[axis]) }
	scale := ratio(axes[0])
	for _, axis := range axes[1:] {
		switch policy {
		case "not_larger":
			scale = min(scale, ratio(axis))
		case "not_smaller":
			scale = max(scale, ratio(axis))
		default:
			return fmt.Errorf("keep_aspect_ratio_policy is %q, want stretch, not_larger or not_smaller", policy)
		}
	}
	for _, axis := range axes {
		// Round half up, as the specification's round_int.
		length := math.Floor(scale*float64(x.Shape[axis]) + 0.5)
		if !(length <= most) {
			return fmt.Errorf("axis %d would have size %v, more than %d", axis, length, most)
		}
		r.out[axis], r.scale[axis] = int64(length), float32(scale)
	}
	return nil
}

// keep initializes the output shape with x's.
func (r *resizePlan) keep(x *ir.Array) {
	r.out = append([]int64(nil), x.Shape...)
	r.scale = make([]float32, len(x.Shape))
	fill(r.scale, 1)
}

// readRoi reads the region of tf_crop_and_resize.
func (r *resizePlan) readRoi(a *ir.Array, axes []int) error {
	if r.transform != "tf_crop_and_resize" {
		return nil
	}
	list, err := floatList(a, "roi")
	if err != nil {
		return err
	}
	if len(list) != 2*len(axes) {
		return fmt.Errorf("roi has %d entries, want %d", len(list), 2*len(axes))
	}
	rank := len(r.out)
	r.roi = make([]float32, 2*rank)
	fill(r.roi[rank:], 1)
	for i, axis := range axes {
		r.roi[axis], r.roi[rank+axis] = list[i], list[len(axes)+i]
	}
	return nil
}
