package movement

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// pads add a border, or remove one.
func pads() []op.Op {
	return []op.Op{
		{Type: "Pad", Since: 2, Shape: padShape(listAttribute), Run: runPad(listAttribute)},
		{Type: "Pad", Since: 11, Shape: padShape(listInput), Run: runPad(listInput)},
		{Type: "CenterCropPad", Since: 18, Shape: cropShape, Run: runCrop},
	}
}

// A border is the padding before and after an axis; negative to crop.
type border struct{ begin, end int64 }

// remaining is the range of an axis of that size that remains.
func (b border) remaining(size int64) int64 { return size + min(b.begin, 0) + min(b.end, 0) }

// maxPad prevents overflow of sums of sizes and pads.
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
		if max(b.begin, b.end) > maxPad || min(b.begin, b.end) < -maxPad || b.remaining(data.Shape[axis]) < 0 {
			return nil, nil, fmt.Errorf("pads %d and %d do not match axis %d of shape %v", b.begin, b.end, axis,
				data.Shape)
		}
		out[axis] = b
	}
	return data, out, nil
}

// chosenAxes are those of input axes, or all.
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
			return nil, fmt.Errorf("mode is %q, want constant, reflect, edge or wrap", mode)
		}
		if v := op.Opt(in, 2); v != nil && (v.DType != data.DType || v.Elems() != 1) {
			return nil, fmt.Errorf("constant_value is %s, want one %s", v, data.DType)
		}
		shape := slices.Clone(data.Shape)
		for i, b := range around {
			if b.remaining(shape[i]) == 0 && mode != "constant" && max(b.begin, b.end) > 0 {
				return nil, fmt.Errorf("mode %s: axis %d is empty and cannot be padded", mode, i)
			}
			shape[i] += b.begin + b.end
		}
		return op.One(data.DType, shape...)
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
			number.Write(value, 0, []float64{float64(c.Float("value", 0))}) // nil if not numeric
		}
		surround(c.Pool, c.Out[0], data, around, value)
		return nil
	}
}

// surround copies data into dst and pads it with the value.
func surround(p *op.Pool, dst, data *ir.Array, around []border, value *ir.Array) {
	inside := copyInside(p, dst, data, around)
	// Strides of 0 repeat the value for all of a border.
	nothing := make([]int64, len(around)) // strides in value
	for axis := range inside {
		for _, part := range inside.border(axis, dst.Shape) {
			move(p, part.strided(dst.Shape, nothing), dst, value)
		}
	}
}

// extend copies data into dst and pads it with its own elements. Inner axes are padded first, so that corners are
// complete when the outer axes are padded.
func extend(p *op.Pool, dst, data *ir.Array, around []border, mode string) {
	inside := copyInside(p, dst, data, around)
	strides := op.Strides(dst.Shape)
	for axis := len(inside) - 1; axis >= 0; axis-- {
		for _, part := range inside.border(axis, dst.Shape) {
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

// mirrored is the position from 0 to n-1 that the outside position i repeats.
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
	// Positions go there and back: 0 … n-1 … 1, without repeating the ends.
	period := 2 * (n - 1)
	i = (i%period + period) % period
	return min(i, period-i)
}

// A region is a range of each axis.
type region []stretch

type stretch struct{ from, n int64 }

// copyInside copies the kept part of data to its position in dst, and returns it.
func copyInside(p *op.Pool, dst, data *ir.Array, around []border) region {
	inside := make(region, len(around))
	src := op.Strides(data.Shape)
	start := int64(0)
	for i, b := range around {
		inside[i] = stretch{max(b.begin, 0), b.remaining(data.Shape[i])}
		start += max(-b.begin, 0) * src[i]
	}
	s := inside.strided(dst.Shape, src)
	s.src = int(start)
	move(p, s, dst, data)
	return inside
}

// border are the parts of a tensor of that shape before and after r along one axis, as wide as r along the preceding
// axes and as the tensor along the following ones.
func (r region) border(axis int, shape []int64) []region {
	before := slices.Clone(r)
	for i := axis + 1; i < len(r); i++ {
		before[i] = stretch{0, shape[i]}
	}
	after := slices.Clone(before)
	end := r[axis].from + r[axis].n
	before[axis], after[axis] = stretch{0, r[axis].from}, stretch{end, shape[axis] - end}
	return []region{before, after}
}

// strided visits the region of a tensor of that shape, with those strides in the other one.
func (r region) strided(shape, src []int64) *stridedTransfer {
	s := &stridedTransfer{}
	for i, stride := range op.Strides(shape) {
		s.dst += int(r[i].from * stride)
		s.add(r[i].n, stride, src[i])
	}
	return s
}
