package backward

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// batchNormPools are BatchNormTrain and MaxPoolKeep in one, and the gradient:
//
//	Y, I, mean, invstd, new_mean, new_var = BatchNormPoolTrain(X, scale, B, mean, var)
//	dX, dscale, dB = BatchNormPoolGrad(X, scale, mean, invstd, dY, I)
//
// with the attributes of both. The value between the two is as large as X, and is computed one channel of one instance
// at a time: in convolutional networks the input of the first pool is the largest value.
func batchNormPools() []op.Op {
	return []op.Op{
		{
			Type: "BatchNormPoolTrain", Shape: normPoolShape, Work: normPoolWork,
			Run: op.FloatOrDouble(normPool[float32], normPool[float64]),
		},
		{
			Type: "BatchNormPoolGrad", Shape: normPoolGradShape, Work: normPoolWork, InPlace: []int{0},
			Run: op.FloatOrDouble(normPoolGrad[float32], normPoolGrad[float64]),
		},
	}
}

// MostTaken is the maximum kernel size of these operators: I has bytes.
const MostTaken = 1 << 8

// pooledOf returns the type of the pool's result, and the windows over X.
func pooledOf(n *op.Node, x *ir.Array) (ir.Spec, conv.Windows, error) {
	if err := images([]*ir.Array{{Kind: x.Kind, DType: ir.Float, Shape: x.Shape}}, "X"); err != nil {
		return ir.Spec{}, conv.Windows{}, err
	}
	w, err := conv.WindowsOf(n, x.Shape[2:])
	if err != nil {
		return ir.Spec{}, w, err
	}
	if w.KernelSize() > MostTaken {
		return ir.Spec{}, w, fmt.Errorf("attribute kernel_shape: %d elements, want at most %d", w.KernelSize(),
			MostTaken)
	}
	y := ir.Spec{DType: x.DType, Shape: slices.Concat(x.Shape[:2], w.Lengths())}
	return y, w, y.Valid()
}

func normPoolShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	own, err := batchNormOutputs(n, in, 4)
	if err != nil {
		return nil, err
	}
	y, _, err := pooledOf(n, in[0])
	if err != nil {
		return nil, err
	}
	y.DType = own[0].DType
	return append([]ir.Spec{y, {DType: ir.Uint8, Shape: y.Shape}}, own[1:]...), nil
}

func normPoolGradShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := channelsOf(in, "X", "scale", "mean", "invstd"); err != nil {
		return nil, err
	}
	y, _, err := pooledOf(n, in[0])
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"dY", "I"} {
		a, err := op.Arg(widenHalf(in, 0, 4), 4+i, name)
		if err != nil {
			return nil, err
		}
		want := []ir.DType{in[1].DType, ir.Uint8}[i]
		if a.Kind != ir.Dense || a.DType != want || !slices.Equal(a.Shape, y.Shape) {
			return nil, fmt.Errorf("input %s is %s, want %s of shape %v", name, a, want, y.Shape)
		}
	}
	each := ir.Spec{DType: in[1].DType, Shape: in[0].Shape[1:2]}
	return half.Stored(n, []ir.Spec{{DType: each.DType, Shape: in[0].Shape}, each, each})
}

// Buffers of a worker, each for a channel of an instance.
const (
	bufferX    = iota
	bufferY    // of the pool's output, or its gradient
	bufferWide // between normalization and pool
	buffersEach
)

func normPoolWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, size := planesOf(in[0]), in[1].DType.Bits()/8
	return int64(workers) * size * int64(buffersEach*p.stride()+batchBlock)
}

// normPoolBuffers is the number of buffers per worker.
func normPoolBuffers[T number](c *op.Call) buffers[T] {
	r := buffers[T]{planes: planesOf(c.In[0]), each: buffersEach}
	n := c.Pool.Workers() * buffersEach * r.stride()
	words := kernel.Words[T](c.Work)
	r.data, r.rest = words[:n], words[n:]
	return r
}

func normPool[T number](c *op.Call) error {
	s, w, err := pooledOf(c.Node, c.In[0])
	if err != nil {
		return err
	}
	p, q, buffers, pool := planesOf(c.In[0]), planesOf(&ir.Array{Shape: s.Shape}), normPoolBuffers[T](c),
		conv.ArgmaxChannel[T, uint8](w)
	epsilon, momentum := float64(c.Float("epsilon", 1e-5)), float64(c.Float("momentum", 0.9))
	scale, shift := ir.View[T](c.In[1]), ir.View[T](c.In[2])
	c.Pool.Slots(p.channels, func(k, slot int) {
		x := func(i int) []T { return get(p, c.In[0], i, k, buffers.buffer(slot, bufferX)) }
		mean, variance := channelStats(p, x)
		inv := 1 / math.Sqrt(variance+epsilon)
		set[T](c, 2, k, mean)
		set[T](c, 3, k, inv)
		updateRunning[T](c, 3, 4, k, mean, momentum)
		updateRunning[T](c, 4, 5, k, variance, momentum)
		a, wide := float64(scale[k])*inv, buffers.buffer(slot, bufferWide)
		for i := range p.instances {
			affine(wide, x(i), mean, a, float64(shift[k]))
			y := buffers.buffer(slot, bufferY)[:q.size]
			if c.Out[0] != nil {
				y = target(q, c.Out[0], i, k, y)
			}
			var places []uint8
			if c.Out[1] != nil {
				places = channelOf(q, ir.View[uint8](c.Out[1]), i, k)
			}
			pool(y, places, wide)
			if c.Out[0] != nil {
				put(c, q, i, k, y)
			}
		}
	})
	return nil
}

// normPoolGrad computes the gradient between the two for the sums over each channel first, and again for dX.
func normPoolGrad[T number](c *op.Call) error {
	_, w, err := pooledOf(c.Node, c.In[0])
	if err != nil {
		return err
	}
	p, q, buffers, pool := planesOf(c.In[0]), planesOf(c.In[4]), normPoolBuffers[T](c),
		conv.MaxGradientChannel[T, uint8](w)
	places := ir.View[uint8](c.In[5])
	c.Pool.Slots(p.channels, func(k, slot int) {
		b := channelGrad[T]{c, p, k, buffers.rest[slot*batchBlock:][:batchBlock]}
		b.eachPass(func(i int) (x, dy, dx []T) {
			// Computed again for each pass: stored, it would be as large as X.
			dy = buffers.buffer(slot, bufferWide)
			pool(dy, get(q, c.In[4], i, k, buffers.buffer(slot, bufferY)[:q.size]), channelOf(q, places, i, k))
			return get(p, c.In[0], i, k, buffers.buffer(slot, bufferX)), dy, dy
		}, func(i int, dx []T) {
			to := target(p, c.Out[0], i, k, dx)
			copy(to, dx)
			put(c, p, i, k, to)
		})
	})
	return nil
}
