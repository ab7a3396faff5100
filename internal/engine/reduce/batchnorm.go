package reduce

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// batchOps: below opset 9 attribute spatial may select statistics per element of an instance. Training mode is selected
// by further outputs below opset 14, then by an attribute.
func batchOps() []op.Op {
	return []op.Op{{Type: "BatchNormalization", Since: 7, Shape: batchShape, Run: runBatch, Work: groupWork,
		InPlace: []int{0}}}
}

// batchLanes are instances × channels × elements of a channel.
func batchLanes(n *op.Node, x *ir.Array) lanes {
	switch {
	case len(x.Shape) == 0:
		return lanes{1, 1, 1}
	case len(x.Shape) == 1:
		return lanes{int(x.Shape[0]), 1, 1}
	case n.Version < 9 && !n.Bool("spatial", true):
		return lanes{int(x.Shape[0]), int(op.Product(x.Shape[1:])), 1}
	}
	return lanesOf(x, 1)
}

func training(n *op.Node) bool {
	// The attribute is of opset 14.
	if n.Version < 14 {
		return n.HasConsumer(1) || n.HasConsumer(2) || n.HasConsumer(3) || n.HasConsumer(4)
	}
	return n.Bool("training_mode", false)
}

func batchShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) == 0 {
		return nil, fmt.Errorf("input X is %s, want at least one instance", x)
	}
	channels := int64(batchLanes(n, x).n)
	for i, name := range []string{"scale", "B", "input_mean", "input_var"} {
		if err := channelInput(in, i+1, name, channels); err != nil {
			return nil, err
		}
	}
	mean, variance := in[3].Spec(), in[4].Spec()
	return []ir.Spec{x.Spec(), mean, variance, mean, variance}, nil
}

func runBatch(c *op.Call) error {
	if c.In[0].DType == ir.Double {
		return batchNorm(c, meanVariance, affine[float64])
	}
	return batchNorm(c, kernel.MeanVariance, scaleShift)
}

func batchNorm[T floatElement](c *op.Call, spread func([]T) (mean, variance float64), apply affineFunc[T]) error {
	x := c.In[0]
	l := batchLanes(c.Node, x)
	scale, bias, mean, variance := numbers(c.In[1]), numbers(c.In[2]), numbers(c.In[3]), numbers(c.In[4])
	in, out := block.Read[T](x), block.Write[T](c.Out[0])
	if training(c.Node) {
		// In training mode the statistics of the batch normalize it, and the inputs are only what the running ones are
		// updated from.
		mean, variance = batchMeanVar(c, l, in, spread)
		updateRunning(c, mean, variance)
	}
	eps := float64(c.Float("epsilon", 1e-5))
	for i := range scale {
		scale[i] /= math.Sqrt(variance[i] + eps)
	}
	// A call for each element would take longer than the element.
	if l.inner == 1 {
		scaleColumns(c, l, out, in, mean, scale, bias)
		return nil
	}
	block.Parallel(c, l.outer*l.n, block.Grain/max(l.inner, 1), groupBytes, func(s block.Scratch, from, to int) {
		bufX, bufY := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len)
		for i := from; i < to; i++ {
			k := i % l.n
			apply(out, in, i*l.inner, l.inner, mean[k], scale[k], bias[k], bufX, bufY)
		}
	})
	return nil
}

// scaleColumns is for channels of one element.
func scaleColumns[T floatElement](c *op.Call, l lanes, out block.Writer[T], in block.Loader[T], center, scale,
	shift []float64) {
	block.Parallel(c, l.outer*l.n, block.Grain, groupBytes, func(s block.Scratch, from, to int) {
		bufX, bufY := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len)
		for at := from; at < to; at += block.Len {
			n := min(block.Len, to-at)
			y, k := out.Block(bufY, at, n), at%l.n
			for i, v := range in.Block(bufX, at, n) {
				y[i] = T((float64(v)-center[k])*scale[k] + shift[k])
				if k++; k == l.n {
					k = 0
				}
			}
			out.Done(at, y)
		}
	})
}

// batchMeanVar are mean and variance of each channel over all instances.
func batchMeanVar[T floatElement](c *op.Call, l lanes, in block.Loader[T],
	spread func([]T) (mean, variance float64)) (mean, variance []float64) {
	mean, variance = make([]float64, l.n), make([]float64, l.n)
	block.Parallel(c, l.n, l.grain(2), groupBytes, func(s block.Scratch, from, to int) {
		buf := block.Take[T](&s, block.Len)
		for k := from; k < to; k++ {
			var m meanVar
			for i := range l.outer {
				measure(&m, in, (i*l.n+k)*l.inner, l.inner, buf, spread)
			}
			mean[k], variance[k] = m.mean, m.variance()
		}
	})
	return mean, variance
}

// updateRunning writes the running mean and variance and, below opset 14, those of this batch.
func updateRunning(c *op.Call, mean, variance []float64) {
	momentum := float64(c.Float("momentum", 0.9))
	for i, now := range [][]float64{mean, variance} {
		before, running, saved := numbers(c.In[3+i]), setter(output(c, 1+i)), setter(output(c, 3+i))
		for k, v := range now {
			running(k, before[k]*momentum+v*(1-momentum))
			saved(k, v)
		}
	}
}

// scaleShift is affine for float32, in two roundings.
func scaleShift(out block.Writer[float32], in block.Loader[float32], at, n int, center, scale, shift float64, bufX,
	bufY []float32) {
	a, b := float32(scale), float32(shift-center*scale)
	for ; n > 0; n -= block.Len {
		m := min(n, block.Len)
		y := out.Block(bufY, at, m)
		kernel.ScaleShift(y, in.Block(bufX, at, m), a, b)
		out.Done(at, y)
		at += m
	}
}
