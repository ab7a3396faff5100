package backward

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// batchNorms are BatchNormalization with given statistics, in training, and its gradient:
//
//	Y = MixedBatchNorm(X, scale, B, mean, var)
//	Y, mean, invstd, new_mean, new_var = BatchNormTrain(X, scale, B, mean, var)
//	dX, dscale, dB = BatchNormGrad(X, scale, mean, invstd, dY)
//
// X is normalized by mean and variance of each channel over the batch, with outputs mean and invstd =
// 1/√(variance+epsilon). new_mean and new_var are the running statistics after the step: old·momentum + this
// batch's·(1−momentum), of the variance over the population, as BatchNormalization of opset 14 and later specifies;
// PyTorch divides by n-1. mean and var are optional if new_mean and new_var are unused.
//
// With attribute frozen the gradient is that of statistics that do not depend on X. X, Y, dX and dY may be Float16,
// with the attributes of package half.
func batchNorms() []op.Op {
	return []op.Op{
		{Type: "MixedBatchNorm", Shape: mixedNormShape, Work: batchTrainWork, InPlace: []int{0}, Run: mixedNorm},
		{
			Type: "BatchNormTrain", Shape: batchTrainShape, Work: batchTrainWork, InPlace: []int{0},
			Run: op.FloatOrDouble(batchTrain[float32], batchTrain[float64]),
		},
		{
			Type: "BatchNormGrad", Shape: batchGradShape, Work: batchGradWork, InPlace: []int{4},
			Run: op.FloatOrDouble(batchGrad[float32], batchGrad[float64]),
		},
	}
}

// channelsOf checks that X has channels, and that the other given inputs have one element per channel.
func channelsOf(in []*ir.Array, names ...string) (int64, error) {
	if err := sameFloats(widenHalf(in, 0), names...); err != nil {
		return 0, err
	}
	if len(in[0].Shape) < 2 {
		return 0, fmt.Errorf("input X is %s and has no channels", in[0])
	}
	for i := range names[1:] {
		if a := in[i+1]; len(a.Shape) != 1 || a.Shape[0] != in[0].Shape[1] {
			return 0, fmt.Errorf("input %s is %s, want one element for each of %d channels", names[i+1], a,
				in[0].Shape[1])
		}
	}
	return in[0].Shape[1], nil
}

func mixedNormShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := channelsOf(in, "X", "scale", "B", "mean", "var"); err != nil {
		return nil, err
	}
	if in[1].DType != ir.Float {
		return nil, fmt.Errorf("input scale is %s, want %s", in[1], ir.Float)
	}
	return half.Stored(n, []ir.Spec{{DType: ir.Float, Shape: in[0].Shape}})
}

func mixedNorm(c *op.Call) error {
	p, buffers, epsilon := planesOf(c.In[0]), buffersOf[float32](c, 1), float64(c.Float("epsilon", 1e-5))
	scale, shift, mean, variance := ir.View[float32](c.In[1]), ir.View[float32](c.In[2]), ir.View[float32](c.In[3]),
		ir.View[float32](c.In[4])
	c.Pool.Slots(p.channels, func(k, slot int) {
		a := float64(scale[k]) / math.Sqrt(float64(variance[k])+epsilon)
		for i := range p.instances {
			x := get(p, c.In[0], i, k, buffers.buffer(slot, 0))
			y := target(p, c.Out[0], i, k, buffers.buffer(slot, 0))
			affine(y, x, float64(mean[k]), a, float64(shift[k]))
			put(c, p, i, k, y)
		}
	})
	return nil
}

func batchTrainShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	return batchNormOutputs(n, in, 3)
}

// batchNormOutputs are the outputs of BatchNormTrain. The node's outputs from index running on are the running
// statistics.
func batchNormOutputs(n *op.Node, in []*ir.Array, running int) ([]ir.Spec, error) {
	names := []string{"X", "scale", "B", "mean", "var"}
	if !n.HasConsumer(running) && !n.HasConsumer(running+1) {
		names = names[:3]
	}
	channels, err := channelsOf(in, names...)
	if err != nil {
		return nil, err
	}
	if in[0].Elems() == 0 {
		return nil, fmt.Errorf("input X is %s, which has no statistics", in[0])
	}
	each := ir.Spec{DType: in[1].DType, Shape: []int64{channels}}
	y := ir.Spec{DType: each.DType, Shape: in[0].Shape}
	return half.Stored(n, []ir.Spec{y, each, each, each, each})
}

// batchTrainWork is the scratch of one plane per worker if X or Y is Float16.
func batchTrainWork(n *op.Node, in []*ir.Array, workers int) int64 {
	return planesOf(in[0]).work(workers, in[0].DType == ir.Float16 || half.IsStored(n))
}

func batchTrain[T number](c *op.Call) error {
	p, buffers := planesOf(c.In[0]), buffersOf[T](c, 1)
	epsilon, momentum := float64(c.Float("epsilon", 1e-5)), float64(c.Float("momentum", 0.9))
	scale, shift := ir.View[T](c.In[1]), ir.View[T](c.In[2])
	c.Pool.Slots(p.channels, func(k, slot int) {
		buffer := buffers.buffer(slot, 0)
		mean, variance := channelStats(p, func(i int) []T { return get(p, c.In[0], i, k, buffer) })
		inv := 1 / math.Sqrt(variance+epsilon)
		set[T](c, 1, k, mean)
		set[T](c, 2, k, inv)
		updateRunning[T](c, 3, 3, k, mean, momentum)
		updateRunning[T](c, 4, 4, k, variance, momentum)
		if c.Out[0] == nil {
			return
		}
		a := float64(scale[k]) * inv
		for i := range p.instances {
			x := get(p, c.In[0], i, k, buffer)
			y := target(p, c.Out[0], i, k, buffer)
			affine(y, x, mean, a, float64(shift[k]))
			put(c, p, i, k, y)
		}
	})
	return nil
}

// set writes element k of output i if it is used.
func set[T number](c *op.Call, i, k int, v float64) {
	if a := op.Opt(c.Out, i); a != nil {
		ir.View[T](a)[k] = T(v)
	}
}

// updateRunning writes element k of a running statistic, which is input in before and output out after the step.
func updateRunning[T number](c *op.Call, in, out, k int, now, momentum float64) {
	if c.HasConsumer(out) {
		set[T](c, out, k, float64(ir.View[T](c.In[in])[k])*momentum+now*(1-momentum))
	}
}

// channelStats returns mean and variance of channel c over all instances, which are combined in order (Chan, Golub and
// LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979).
func channelStats[T number](p planes, plane func(instance int) []T) (mean, variance float64) {
	squares, size := 0.0, float64(p.size)
	for i := range p.instances {
		m, v := meanVariance(plane(i))
		n := float64(i+1) * size
		d := m - mean
		mean += d * size / n
		squares += v*size + d*d*size*(n-size)/n
	}
	return mean, squares / (float64(p.instances) * size)
}

func meanVariance[T number](x []T) (mean, variance float64) {
	if x, ok := any(x).([]float32); ok {
		return kernel.MeanVariance(x)
	}
	mean = total(x) / float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		variance += d * d
	}
	return mean, variance / float64(len(x))
}

// affine writes (x-center)·scale + shift.
func affine[T number](y, x []T, center, scale, shift float64) {
	if y, ok := any(y).([]float32); ok {
		kernel.ScaleShift(y, any(x).([]float32), float32(scale), float32(shift-center*scale))
		return
	}
	for i, v := range x {
		y[i] = T((float64(v)-center)*scale + shift)
	}
}

func batchGradShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := channelsOf(in, "X", "scale", "mean", "invstd"); err != nil {
		return nil, err
	}
	dy, err := op.Arg(in, 4, "dY")
	if err != nil {
		return nil, err
	}
	if w := widenHalf(in, 0, 4); w[4].Kind != ir.Dense || w[4].DType != w[0].DType ||
		!slices.Equal(dy.Shape, in[0].Shape) {
		return nil, fmt.Errorf("input dY is %s, want %s as X", dy, in[0])
	}
	each := ir.Spec{DType: in[1].DType, Shape: in[0].Shape[1:2]}
	return half.Stored(n, []ir.Spec{{DType: each.DType, Shape: in[0].Shape}, each, each})
}

// The elements of a channel are processed in blocks that fit into the cache.
const batchBlock = 4096

func batchGradWork(n *op.Node, in []*ir.Array, workers int) int64 {
	buffer := int64(workers) * batchBlock * in[1].DType.Bits() / 8
	halves := in[0].DType == ir.Float16 || in[4].DType == ir.Float16 || half.IsStored(n)
	return buffer + planesOf(in[0]).work(2*workers, halves)
}

// batchGrad sums over each channel first: of dY, and of dY times the centered X. Then
//
//	dX = scale·invstd·(dY − mean of dY − (X−mean)·invstd²·mean of dY·(X−mean)).
func batchGrad[T number](c *op.Call) error {
	p, buffers := planesOf(c.In[0]), buffersOf[T](c, 2)
	c.Pool.Slots(p.channels, func(k, slot int) {
		b := channelGrad[T]{c, p, k, buffers.rest[slot*batchBlock:][:batchBlock]}
		b.eachPass(func(i int) (x, dy, dx []T) {
			x, dy = get(p, c.In[0], i, k, buffers.buffer(slot, 0)), get(p, c.In[4], i, k, buffers.buffer(slot, 1))
			if c.Out[0] != nil {
				dx = target(p, c.Out[0], i, k, buffers.buffer(slot, 1))
			}
			return x, dy, dx
		}, func(i int, dx []T) { put(c, p, i, k, dx) })
	})
	return nil
}

// A channelGrad computes the gradients of one channel.
type channelGrad[T number] struct {
	*op.Call
	planes
	k      int
	buffer []T // for a block
}

// eachPass calls its functions for the channel of each instance and its gradient twice: for the sums, and to write.
func (b channelGrad[T]) eachPass(instance func(i int) (x, dy, dx []T), written func(i int, dx []T)) {
	scale, center, s := float64(ir.View[T](b.In[1])[b.k]), float64(ir.View[T](b.In[2])[b.k]),
		float64(ir.View[T](b.In[3])[b.k])
	sum, product := 0.0, 0.0
	for i := range b.instances {
		x, dy, _ := instance(i)
		sum += total(dy)
		product += dot(dy, x)
	}
	// Σ dY·(X-mean) from sums of dY·X and dY, which are float64: no centered copy of X is needed.
	product -= center * sum
	set[T](b.Call, 1, b.k, product*s)
	set[T](b.Call, 2, b.k, sum)
	if b.Out[0] == nil {
		return
	}
	d := descent[T]{center: center, dy: scale * s, buffer: b.buffer}
	if n := float64(b.instances * b.size); !b.Bool("frozen", false) {
		d.x, d.shift = -d.dy*s*s*product/n, -d.dy*sum/n
	}
	for i := range b.instances {
		x, dy, dx := instance(i)
		d.writeGradient(dx, dy, x)
		written(i, dx)
	}
}

// A descent computes gradients of one channel: dy·dY + x·(X−center) + shift.
type descent[T number] struct {
	center, dy, x, shift float64
	buffer               []T
}

// writeGradient supports dX in dY's memory.
func (d descent[T]) writeGradient(dx, dy, x []T) {
	for ; len(dx) > 0; dx, dy, x = dx[min(batchBlock, len(dx)):], dy[min(batchBlock, len(dy)):],
		x[min(batchBlock, len(x)):] {
		n := min(batchBlock, len(dx))
		d.block(dx[:n], dy[:n], x[:n], d.buffer[:n])
	}
}

func (d descent[T]) block(dx, dy, x, buffer []T) {
	if to, ok := any(dx).([]float32); ok {
		kernel.MulScalar(to, any(dy).([]float32), float32(d.dy))
		// Frozen statistics do not depend on X.
		if d.x == 0 && d.shift == 0 {
			return
		}
		above := any(buffer).([]float32)
		kernel.SubScalar(above, any(x).([]float32), float32(d.center))
		kernel.ScaleShift(above, above, float32(d.x), float32(d.shift))
		kernel.Add(to, to, above)
		return
	}
	for i, v := range x {
		dx[i] = T(d.dy*float64(dy[i]) + d.x*(float64(v)-d.center) + d.shift)
	}
}
