package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// convolutions are
//
//	dX, dW, dB = ConvGrad(X, W, dY)
//	dX, dW, dB = ConvTransposeGrad(X, W, dY)
//
// with the attributes of Conv and ConvTranspose. Each output is computed only if it is used; dX is first, and uses dW's
// memory as scratch. X, dX and dY may be Float16, with the attributes of package half.
func convolutions() []op.Op {
	return []op.Op{
		convolution("ConvGrad", false),
		convolution("ConvTransposeGrad", true),
	}
}

// A convGradient is the convolution of a node's gradients. A transposed one is the same convolution with X
// and Y exchanged.
type convGradient struct{ transposed bool }

func convolution(typ string, transposed bool) op.Op {
	g := convGradient{transposed}
	return op.Op{
		Type: typ, Shape: g.shape, Work: g.work,
		Run: op.FloatOrDouble(func(c *op.Call) error { return convGrad[float32](g, c) },
			func(c *op.Call) error { return convGrad[float64](g, c) }),
	}
}

// geometry checks inputs X and W alone.
func (g convGradient) geometry(n *op.Node, in []*ir.Array) (*conv.Geometry, error) {
	in = widenHalf(in, 0)
	if err := images(in, "X", "W"); err != nil {
		return nil, err
	}
	if g.transposed {
		return conv.TransposedGeometryOf(n, in[0], in[1])
	}
	return conv.GeometryOf(n, in[0].Shape, in[1].Shape)
}

// images checks that the first inputs are of one type, Float or Double, and that they have spatial axes.
func images(in []*ir.Array, names ...string) error {
	if err := sameFloats(in, names...); err != nil {
		return err
	}
	for i, name := range names {
		if len(in[i].Shape) < 3 {
			return fmt.Errorf("input %s is %s and has no spatial axes", name, in[i])
		}
	}
	return nil
}

// sameFloats checks that the first inputs are given, and of one type, Float or Double.
func sameFloats(in []*ir.Array, names ...string) error {
	for i, name := range names {
		a, err := op.Arg(in, i, name)
		if err != nil {
			return err
		}
		if a.Kind != ir.Dense || a.DType != ir.Float && a.DType != ir.Double {
			return fmt.Errorf("input %s is %s, want float or double", name, a)
		}
		if a.DType != in[0].DType {
			return fmt.Errorf("input %s is %s, want the type of %s, %s", name, a, names[0], in[0].DType)
		}
	}
	return nil
}

func (g convGradient) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	in = widenHalf(in, 0, 2)
	if err := images(in, "X", "W", "dY"); err != nil {
		return nil, err
	}
	geometry, err := g.geometry(n, in)
	if err != nil {
		return nil, err
	}
	want := geometry.OutShape()
	if g.transposed {
		want = geometry.InShape()
	}
	if !slices.Equal(in[2].Shape, want) {
		return nil, fmt.Errorf("input dY is %s, want the output's shape %v", in[2], want)
	}
	return half.Stored(n, []ir.Spec{in[0].Spec(), in[1].Spec(), {DType: in[0].DType, Shape: want[1:2:2]}})
}

func (g convGradient) work(n *op.Node, in []*ir.Array, workers int) int64 {
	geometry, err := g.geometry(n, in)
	if err != nil || in[0].DType == ir.Double {
		return 0
	}
	x, dy := in[0].DType == ir.Float16, in[2].DType == ir.Float16
	size := int64(0)
	switch {
	case !n.HasConsumer(0):
	case g.transposed:
		size = geometry.ConvolveWork(workers, conv.Halves{X: dy, Y: half.IsStored(n)})
	default:
		size = geometry.InputGradientWork(workers, n.HasConsumer(1), conv.Halves{X: half.IsStored(n), Y: dy})
	}
	if n.HasConsumer(1) {
		h := conv.Halves{X: x, Y: dy}
		if g.transposed {
			h = conv.Halves{X: dy, Y: x}
		}
		size = max(size, geometry.WeightGradientWork(workers, h))
	}
	return size
}

func convGrad[T number](g convGradient, c *op.Call) error {
	geometry, err := g.geometry(c.Node, c.In)
	if err != nil {
		return err
	}
	exceeds := c.Bool("exceeds", false)
	x, w, dy := conv.ImagesOf[T](c.In[0], false), ir.View[T](c.In[1]), conv.ImagesOf[T](c.In[2], false)
	// The gradient of a transposed convolution with respect to its input is a convolution, and the other way round.
	if out := op.Opt(c.Out, 0); out != nil {
		dx := conv.ImagesOf[T](out, exceeds)
		if g.transposed {
			conv.Convolve(geometry, c.Pool, c.Work, dx, dy, w)
		} else {
			conv.InputGradient(geometry, c.Pool, c.Work, dx, dy, w, view[T](op.Opt(c.Out, 1)))
		}
	}
	if dw := op.Opt(c.Out, 1); dw != nil {
		in, out := x, dy
		if g.transposed {
			in, out = dy, x
		}
		conv.WeightGradient(geometry, c.Pool, c.Work, ir.View[T](dw), in, out)
	}
	if db := op.Opt(c.Out, 2); db != nil {
		channelSums(c.Pool, ir.View[T](db), c.In[2])
	}
	return nil
}

// channelSums adds up each channel of x over instances and places: within an instance first, then over instances.
func channelSums[T number](p *op.Pool, sums []T, x *ir.Array) {
	planes := planesOf(x)
	p.Rows(len(sums), grain/max(planes.instances*planes.size, 1), func(from, to int) {
		for c := from; c < to; c++ {
			// In float64 and in a fixed order, so that the result does not depend on the number of workers.
			sum := 0.0
			for i := range planes.instances {
				sum += channelSum[T](planes, x, i, c)
			}
			sums[c] = T(sum)
		}
	})
}

// channelSum adds up channel c of instance i: if Float16, in blocks that stay in the cache.
func channelSum[T number](p planes, x *ir.Array, i, c int) (sum float64) {
	if x.DType != ir.Float16 {
		return total(channelOf(p, ir.View[T](x), i, c))
	}
	var buffer [halfBlock]float32
	for plane := range slices.Chunk(channelOf(p, ir.View[uint16](x), i, c), halfBlock) {
		kernel.F32FromF16(buffer[:len(plane)], plane)
		sum += kernel.ReduceSum(buffer[:len(plane)])
	}
	return sum
}

// total is the sum of x, and dot that of the products of x and y, in float64.
func total[T number](x []T) float64 {
	if x, ok := any(x).([]float32); ok {
		return kernel.ReduceSum(x)
	}
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	return sum
}

func dot[T number](x, y []T) float64 {
	if x, ok := any(x).([]float32); ok {
		return kernel.Dot(x, any(y).([]float32))
	}
	sum := 0.0
	for i, v := range x {
		sum += float64(float64(v) * float64(y[i]))
	}
	return sum
}
