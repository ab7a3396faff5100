package movement

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// pads add a border, or take one away.
func pads() []op.Op {
	return []op.Op{
		{Type: "Pad", Since: 2, Shape: padShape(listAttribute), Run: runPad(listAttribute)},
		{Type: "Pad", Since: 11, Shape: padShape(listInput), Run: runPad(listInput)},
		{Type: "CenterCropPad", Since: 18, Shape: cropShape, Run: runCrop},
	}
}

// A border is what comes in front of an axis and behind it; what goes is negative.
type border struct{ begin, end int64 }

// kept is what it leaves of an axis of that size.
func (b border) kept(size int64) int64 { return size + min(b.begin, 0) + min(b.end, 0) }

// maxPad keeps sums of sizes and pads far from overflow.
const maxPad = 1 << 56

// borders are the borders of data's axes.
func borders(n *op.Node, in []*ir.Array, from list) (*ir.Array, []border, error) {
	data, err := op.Arg(in, 0, "data")
	if err != nil {
		return nil, nil, err
	}
	pads, given, err := from(n, in, "pads", 1)
	if err != nil {
		return nil, nil, err
	}
	if !given {
		return nil, nil, errors.New("pads are missing")
	}
	axes, err := chosenAxes(n, in, from, len(data.Shape))
	if err != nil {
		return nil, nil, err
	}
	if len(pads) != 2*len(axes) {
		return nil, nil, fmt.Errorf("%d pads for %d axes", len(pads), len(axes))
	}
	out := make([]border, len(data.Shape))
	for i, axis := range axes {
		b := border{pads[i], pads[len(axes)+i]}
		if max(b.begin, b.end) > maxPad || min(b.begin, b.end) < -maxPad || b.kept(data.Shape[axis]) < 0 {
			return nil, nil, fmt.Errorf("pads %d and %d do not fit axis %d of shape %v", b.begin, b.end, axis, data.Shape)
		}
		out[axis] = b
	}
	return data, out, nil
}

// chosenAxes are those that input axes names, or all.
func chosenAxes(n *op.Node, in []*ir.Array, from list, rank int) ([]int, error) {
	named, given, err := from(n, in, "axes", 3)
	if err != nil {
		return nil, err
	}
	return axesOr(named, given, rank)
}

func axesOr(named []int64, given bool, rank int) ([]int, error) {
	if !given {
		return upTo(rank), nil
	}
	if _, err := marked(named, rank); err != nil {
		return nil, err
	}
	axes := make([]int, len(named))
	for i, a := range named {
		axes[i], _ = op.Axis(a, rank)
	}
	return axes, nil
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func padShape(from list) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		data, around, err := borders(n, in, from)
		if err != nil {
			return nil, err
		}
		mode := n.Text("mode", "constant")
		if !slices.Contains([]string{"constant", "reflect", "edge", "wrap"}, mode) {
			return nil, fmt.Errorf("mode %q is none of constant, reflect, edge, wrap", mode)
		}
		if v := op.Opt(in, 2); v != nil && (v.DType != data.DType || v.Elems() != 1) {
			return nil, fmt.Errorf("constant_value is %s, not one %s", v, data.DType)
		}
		shape := slices.Clone(data.Shape)
		for i, b := range around {
			if b.kept(shape[i]) == 0 && mode != "constant" && max(b.begin, b.end) > 0 {
				return nil, fmt.Errorf("mode %s: nothing is left of axis %d that the border could be made of", mode, i)
			}
			shape[i] += b.begin + b.end
		}
		return one(data.DType, shape...)
	}
}

func runPad(from list) func(*op.Call) error {
	return func(c *op.Call) error {
		data, around, err := borders(c.Node, c.In, from)
		if err != nil {
			return err
		}
		if c.Out[0].Elems() == 0 {
			return nil // borders may be of any size
		}
		if mode := c.Text("mode", "constant"); mode != "constant" {
			extend(c.Pool, c.Out[0], data, around, mode)
			return nil
		}
		value := c.Opt(2)
		if value == nil {
			value = ir.NewArray(data.DType)
			number.Write(value, 0, []float64{float64(c.Float("value", 0))}) // nothing where it is no number
		}
		surround(c.Pool, c.Out[0], data, around, value)
		return nil
	}
}

// surround copies data into dst and writes the value around it.
func surround(p *op.Pool, dst, data *ir.Array, around []border, value *ir.Array) {
	inside := copyInside(p, dst, data, around)
	nothing := make([]int64, len(around)) // steps in value
	for axis := range inside {
		for _, part := range inside.beside(axis, dst.Shape) {
			move(p, part.strided(dst.Shape, nothing), dst, value)
		}
	}
}

// extend copies data into dst and repeats it around it. What is beside the inner axes is made first, so that
// what lies at the corners is there when the outer axes are extended.
func extend(p *op.Pool, dst, data *ir.Array, around []border, mode string) {
	inside := copyInside(p, dst, data, around)
	strides := op.Strides(dst.Shape)
	for axis := len(inside) - 1; axis >= 0; axis-- {
		for _, part := range inside.beside(axis, dst.Shape) {
			to := part[axis]
			for at := to.from; at < to.from+to.n; at++ {
				part[axis] = stretch{at, 1}
				s := part.strided(dst.Shape, strides)
				from := inside[axis].from + mirrored(at-inside[axis].from, inside[axis].n, mode)
				s.src = s.dst + int((from-at)*strides[axis])
				move(p, s, dst, dst)
			}
		}
	}
}

// mirrored is the place from 0 to n-1 that place i, outside of it, repeats.
func mirrored(i, n int64, mode string) int64 {
	switch mode {
	case "edge":
		return within(i, 0, n-1)
	case "wrap":
		return (i%n + n) % n
	}
	if n == 1 {
		return 0
	}
	period := 2 * (n - 1)
	i = (i%period + period) % period
	return min(i, period-i)
}

// A region is a stretch of each axis.
type region []stretch

type stretch struct{ from, n int64 }

// copyInside copies what is kept of data to its place in dst, and says where that is.
func copyInside(p *op.Pool, dst, data *ir.Array, around []border) region {
	inside := make(region, len(around))
	src := op.Strides(data.Shape)
	start := int64(0)
	for i, b := range around {
		inside[i] = stretch{max(b.begin, 0), b.kept(data.Shape[i])}
		start += max(-b.begin, 0) * src[i]
	}
	s := inside.strided(dst.Shape, src)
	s.src = int(start)
	move(p, s, dst, data)
	return inside
}

// beside are the parts of a tensor of that shape in front of r and behind it along one axis, as wide as r along
// the axes before and as the tensor along those after it.
func (r region) beside(axis int, shape []int64) []region {
	before := slices.Clone(r)
	for i := axis + 1; i < len(r); i++ {
		before[i] = stretch{0, shape[i]}
	}
	after := slices.Clone(before)
	end := r[axis].from + r[axis].n
	before[axis], after[axis] = stretch{0, r[axis].from}, stretch{end, shape[axis] - end}
	return []region{before, after}
}

// strided visits the region of a tensor of that shape, with those steps in the other one.
func (r region) strided(shape, src []int64) *strided {
	s := &strided{}
	for i, stride := range op.Strides(shape) {
		s.dst += int(r[i].from * stride)
		s.add(r[i].n, stride, src[i])
	}
	return s
}
