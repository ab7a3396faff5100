package backward

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// batchNorms are BatchNormalization while it is trained, and its gradient:
//
//	Y, mean, invstd, new_mean, new_var = BatchNormTrain(X, scale, B, mean, var)
//	dX, dscale, dB = BatchNormGrad(X, scale, mean, invstd, dY)
//
// X is normalised by mean and variance of each channel over the batch, which mean and invstd = 1/√(variance+epsilon) tell
// of. new_mean and new_var are the running statistics behind the step: old·momentum + this batch's·(1−momentum), of the
// variance over the population, as BatchNormalization of opset 14 and later says; PyTorch divides by one less. mean
// and var may be absent where those are not read.
//
// Where attribute frozen is set, the gradient is that of statistics that do not depend on X. X, Y, dX and dY may be Float16, with the
// attributes of package half.
func batchNorms() []op.Op {
	return []op.Op{
		{
			Type: "BatchNormTrain", Shape: batchTrainShape, Work: batchTrainWork, InPlace: []int{0},
			Run: byType(batchTrain[float32], batchTrain[float64]),
		},
		{
			Type: "BatchNormGrad", Shape: batchGradShape, Work: batchGradWork, InPlace: []int{4},
			Run: byType(batchGrad[float32], batchGrad[float64]),
		},
	}
}

// channelsOf checks that X has channels, and that the other inputs that are there have a number for each.
func channelsOf(in []*ir.Array, names ...string) (int64, error) {
	if err := sameFloats(widened(in, 0), names...); err != nil {
		return 0, err
	}
	if len(in[0].Shape) < 2 {
		return 0, fmt.Errorf("input X is %s and has no channels", in[0])
	}
	for i := range names[1:] {
		if a := in[i+1]; len(a.Shape) != 1 || a.Shape[0] != in[0].Shape[1] {
			return 0, fmt.Errorf("input %s is %s, want a number for each of %d channels", names[i+1], a, in[0].Shape[1])
		}
	}
	return in[0].Shape[1], nil
}

func batchTrainShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) { return normalized(n, in, 3) }

// normalized are the outputs of BatchNormTrain. The node's outputs from number running on are the running statistics.
func normalized(n *op.Node, in []*ir.Array, running int) ([]ir.Spec, error) {
	names := []string{"X", "scale", "B", "mean", "var"}
	if !n.HasConsumer(running) && !n.HasConsumer(running+1) {
		names = names[:3]
	}
	channels, err := channelsOf(in, names...)
	if err != nil {
		return nil, err
	}
	if in[0].Elems() == 0 {
		return nil, fmt.Errorf("input X is %s, of which there are no statistics", in[0])
	}
	each := ir.Spec{DType: in[1].DType, Shape: []int64{channels}}
	y := ir.Spec{DType: each.DType, Shape: in[0].Shape}
	return stored(n, []ir.Spec{y, each, each, each, each})
}

// batchTrainWork is a plane for each worker where X or Y is Float16.
func batchTrainWork(n *op.Node, in []*ir.Array, workers int) int64 {
	return planesOf(in[0]).work(workers, in[0].DType == ir.Float16 || isStored(n))
}

func batchTrain[T number](c *op.Call) error {
	p, rooms := planesOf(c.In[0]), roomsOf[T](c, 1)
	epsilon, momentum := float64(c.Float("epsilon", 1e-5)), float64(c.Float("momentum", 0.9))
	scale, shift := ir.View[T](c.In[1]), ir.View[T](c.In[2])
	c.Pool.Slots(p.channels, func(k, slot int) {
		room := rooms.of(slot, 0)
		mean, variance := moments(p, k, func(i int) []T { return get(p, c.In[0], i, k, room) })
		inv := 1 / math.Sqrt(variance+epsilon)
		set[T](c, 1, k, mean)
		set[T](c, 2, k, inv)
		follow[T](c, 3, 3, k, mean, momentum)
		follow[T](c, 4, 4, k, variance, momentum)
		if c.Out[0] == nil {
			return
		}
		a := float64(scale[k]) * inv
		for i := range p.instances {
			x := get(p, c.In[0], i, k, room)
			y := target(p, c.Out[0], i, k, room)
			affine(y, x, mean, a, float64(shift[k]))
			put(c, p, i, k, y)
		}
	})
	return nil
}

// set writes number k of output i if it is read.
func set[T number](c *op.Call, i, k int, v float64) {
	if a := op.Opt(c.Out, i); a != nil {
		ir.View[T](a)[k] = T(v)
	}
}

// follow writes number k of a running statistic, which is input in before and output out behind the step.
func follow[T number](c *op.Call, in, out, k int, now, momentum float64) {
	if c.HasConsumer(out) {
		set[T](c, out, k, float64(ir.View[T](c.In[in])[k])*momentum+now*(1-momentum))
	}
}

// moments are mean and variance of channel c over all instances, which are joined in order (Chan, Golub and LeVeque,
// "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979).
func moments[T number](p planes, c int, plane func(instance int) []T) (mean, variance float64) {
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
	if w := widened(in, 0, 4); w[4].Kind != ir.Dense || w[4].DType != w[0].DType || !slices.Equal(dy.Shape, in[0].Shape) {
		return nil, fmt.Errorf("input dY is %s, want %s as X", dy, in[0])
	}
	each := ir.Spec{DType: in[1].DType, Shape: in[0].Shape[1:2]}
	return stored(n, []ir.Spec{{DType: each.DType, Shape: in[0].Shape}, each, each})
}

// Elements of a channel are worked on in blocks that stay near the core.
const batchBlock = 4096

func batchGradWork(n *op.Node, in []*ir.Array, workers int) int64 {
	room := int64(workers) * batchBlock * in[1].DType.Bits() / 8
	halves := in[0].DType == ir.Float16 || in[4].DType == ir.Float16 || isStored(n)
	return room + planesOf(in[0]).work(2*workers, halves)
}

// batchGrad sums over each channel first: of dY, and of dY times what X is above the mean. Then
//
//	dX = scale·invstd·(dY − mean of dY − (X−mean)·invstd²·mean of dY·(X−mean)).
func batchGrad[T number](c *op.Call) error {
	p, rooms := planesOf(c.In[0]), roomsOf[T](c, 2)
	c.Pool.Slots(p.channels, func(k, slot int) {
		b := channelGrad[T]{c, p, k, rooms.rest[slot*batchBlock:][:batchBlock]}
		b.run(func(i int) (x, dy, dx []T) {
			x, dy = get(p, c.In[0], i, k, rooms.of(slot, 0)), get(p, c.In[4], i, k, rooms.of(slot, 1))
			if c.Out[0] != nil {
				dx = target(p, c.Out[0], i, k, rooms.of(slot, 1))
			}
			return x, dy, dx
		}, func(i int, dx []T) { put(c, p, i, k, dx) })
	})
	return nil
}

// A channelGrad makes the gradients of one channel.
type channelGrad[T number] struct {
	*op.Call
	planes
	k    int
	room []T // for a block
}

// run asks for the channel in each instance, and for where to write its gradient, twice: for the sums, and to write.
func (b channelGrad[T]) run(instance func(i int) (x, dy, dx []T), written func(i int, dx []T)) {
	scale, center, s := float64(ir.View[T](b.In[1])[b.k]), float64(ir.View[T](b.In[2])[b.k]), float64(ir.View[T](b.In[3])[b.k])
	sum, product := 0.0, 0.0
	for i := range b.instances {
		x, dy, _ := instance(i)
		sum += total(dy)
		product += dot(dy, x)
	}
	product -= center * sum
	set[T](b.Call, 1, b.k, product*s)
	set[T](b.Call, 2, b.k, sum)
	if b.Out[0] == nil {
		return
	}
	d := descent[T]{center: center, dy: scale * s, room: b.room}
	if n := float64(b.instances * b.size); !b.Bool("frozen", false) {
		d.x, d.shift = -d.dy*s*s*product/n, -d.dy*sum/n
	}
	for i := range b.instances {
		x, dy, dx := instance(i)
		d.write(dx, dy, x)
		written(i, dx)
	}
}

// A descent makes gradients of one channel: dy·dY + x·(X−center) + shift.
type descent[T number] struct {
	center, dy, x, shift float64
	room                 []T
}

// write may be given dY's memory for dX.
func (d descent[T]) write(dx, dy, x []T) {
	for ; len(dx) > 0; dx, dy, x = dx[min(batchBlock, len(dx)):], dy[min(batchBlock, len(dy)):], x[min(batchBlock, len(x)):] {
		n := min(batchBlock, len(dx))
		d.block(dx[:n], dy[:n], x[:n], d.room[:n])
	}
}

func (d descent[T]) block(dx, dy, x, room []T) {
	if to, ok := any(dx).([]float32); ok {
		kernel.MulScalar(to, any(dy).([]float32), float32(d.dy))
		if d.x == 0 && d.shift == 0 {
			return
		}
		above := any(room).([]float32)
		kernel.SubScalar(above, any(x).([]float32), float32(d.center))
		kernel.ScaleShift(above, above, float32(d.x), float32(d.shift))
		kernel.Add(to, to, above)
		return
	}
	for i, v := range x {
		dx[i] = T(d.dy*float64(dy[i]) + d.x*(float64(v)-d.center) + d.shift)
	}
}
