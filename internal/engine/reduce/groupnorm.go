package reduce

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// channelOps normalize groups of channels of each instance. Scale and bias of GroupNormalization are per group below
// opset 21, then per channel.
func channelOps() []op.Op {
	var ops []op.Op
	for _, o := range []struct {
		name  string
		since int64
		groupNorm
	}{
		{"InstanceNormalization", 6, groupNorm{}},
		{"GroupNormalization", 18, groupNorm{grouped: true, byGroup: true}},
		{"GroupNormalization", 21, groupNorm{grouped: true}},
	} {
		g := o.groupNorm
		ops = append(ops, op.Op{Type: o.name, Since: o.since, Shape: g.shape, Run: g.run, Work: groupWork,
			InPlace: []int{0}})
	}
	return ops
}

type groupNorm struct {
	grouped bool // attribute num_groups is the number of groups, else each channel is a group
	byGroup bool // scale and bias are per group
}

func (g groupNorm) groups(n *op.Node, x *ir.Array) int64 {
	if g.grouped {
		return n.Int("num_groups", 0)
	}
	return x.Shape[1]
}

func (g groupNorm) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) < 2 {
		return nil, fmt.Errorf("input X is %s, want at least one channel", x)
	}
	groups, channels := g.groups(n, x), x.Shape[1]
	if channels > 0 && (groups < 1 || channels%groups != 0) {
		return nil, fmt.Errorf("attribute num_groups is %d, which does not divide %d channels", groups, channels)
	}
	want := channels
	if g.byGroup {
		want = groups
	}
	for i, name := range []string{"scale", "bias"} {
		if err := channelInput(in, i+1, name, want); err != nil {
			return nil, err
		}
	}
	return []ir.Spec{x.Spec()}, nil
}

// channelInput checks an input with one number per channel.
func channelInput(in []*ir.Array, i int, name string, want int64) error {
	a, err := block.Floats.Tensor(in, i, name)
	if err != nil {
		return err
	}
	if a.Elems() != want {
		return fmt.Errorf("input %s is %s, want %d numbers", name, a, want)
	}
	return nil
}

// groupBytes is the size of blocks of input and output.
const groupBytes = 2 * 8 * block.Len

func groupWork(_ *op.Node, _ []*ir.Array, workers int) int64 { return int64(workers) * groupBytes }

func (g groupNorm) run(c *op.Call) error {
	if c.In[0].DType == ir.Double {
		normGroups(c, g, meanVariance, affine[float64])
	} else {
		normGroups(c, g, kernel.MeanVariance, affineSingle)
	}
	return nil
}

func normGroups[T floatElement](c *op.Call, g groupNorm, spread func([]T) (mean, variance float64),
	apply affineFunc[T]) {
	x := c.In[0]
	groups, channels := int(g.groups(c.Node, x)), int(x.Shape[1])
	if x.Elems() == 0 {
		return
	}
	scale, bias := numbers(c.In[1]), numbers(c.In[2])
	in, out := block.Read[T](x), block.Write[T](c.Out[0])
	eps := float64(c.Float("epsilon", 1e-5))
	size := int(op.Product(x.Shape[2:]))
	perGroup := channels / groups
	l := lanes{int(x.Shape[0]) * groups, perGroup * size, 1}
	block.Parallel(c, l.outer, l.grain(3), groupBytes, func(s block.Scratch, from, to int) {
		bufX, bufY := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len)
		for i := from; i < to; i++ {
			var m meanVar
			measure(&m, in, i*l.n, l.n, bufX, spread)
			inv := 1 / math.Sqrt(m.variance()+eps)
			for k := range perGroup {
				p := i%groups*perGroup + k
				if g.byGroup {
					p = i % groups
				}
				apply(out, in, i*l.n+k*size, size, m.mean, inv*scale[p], bias[p], bufX, bufY)
			}
		}
	})
}

// numbers are the elements of a small float tensor.
func numbers(a *ir.Array) []float64 {
	x := make([]float64, a.Elems())
	number.Read(x, a, 0)
	return x
}

// An affineFunc writes (x-center)·scale+shift for n elements from at on.
type affineFunc[T floatElement] func(out block.Writer[T], in block.Loader[T], at, n int, center, scale, shift float64,
	bufX, bufY []T)

func affine[T floatElement](out block.Writer[T], in block.Loader[T], at, n int, center, scale, shift float64, bufX,
	bufY []T) {
	for ; n > 0; n -= block.Len {
		m := min(n, block.Len)
		y := out.Block(bufY, at, m)
		for i, v := range in.Block(bufX, at, m) {
			y[i] = T((float64(v)-center)*scale + shift)
		}
		out.Done(at, y)
		at += m
	}
}

// affineSingle is affine in float32, in three roundings.
func affineSingle(out block.Writer[float32], in block.Loader[float32], at, n int, center, scale, shift float64, bufX,
	bufY []float32) {
	for ; n > 0; n -= block.Len {
		m := min(n, block.Len)
		y := out.Block(bufY, at, m)
		kernel.SubScalar(y, in.Block(bufX, at, m), float32(center))
		kernel.ScaleShift(y, y, float32(scale), float32(shift))
		out.Done(at, y)
		at += m
	}
}
