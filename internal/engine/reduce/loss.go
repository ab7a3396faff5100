package reduce

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// lossOps compare scores of classes along axis 1 with labels.
func lossOps() []op.Op {
	return []op.Op{
		{Type: "NegativeLogLikelihoodLoss", Since: 12, Shape: lossShape, Work: lossWork,
			Run: func(c *op.Call) error { return loss(c, false) }},
		{Type: "SoftmaxCrossEntropyLoss", Since: 12, Shape: lossShape, Work: lossWork,
			Run: func(c *op.Call) error { return loss(c, true) }},
	}
}

func lossShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "scores")
	if err != nil {
		return nil, err
	}
	labels, err := block.Of(ir.Int32, ir.Int64).Tensor(in, 1, "labels")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) < 2 || !slices.Equal(labels.Shape, slices.Delete(slices.Clone(x.Shape), 1, 2)) {
		return nil, fmt.Errorf("input labels is %s, want %s without axis 1", labels, x)
	}
	if op.Opt(in, 2) != nil {
		if err := channelInput(in, 2, "weights", x.Shape[1]); err != nil {
			return nil, err
		}
	}
	shape := labels.Shape
	switch r := n.Text("reduction", "mean"); r {
	case "none":
	case "sum", "mean":
		shape = nil
	default:
		return nil, fmt.Errorf("attribute reduction is %q, want none, sum or mean", r)
	}
	return []ir.Spec{{DType: x.DType, Shape: shape}, x.Spec()}, nil
}

// lossWork is a lane per worker, and the loss and weight of every label.
func lossWork(_ *op.Node, in []*ir.Array, workers int) int64 {
	return int64(workers)*block.Bytes[float64](int(in[0].Shape[1])) + 2*block.Bytes[float64](int(in[1].Elems()))
}

// loss is the negative score of each label, or of its log-softmax if soft is set.
func loss(c *op.Call, soft bool) error {
	l := lanesOf(c.In[0], 1)
	labels, err := lossLabels(c, l.n)
	if err != nil {
		return err
	}
	size := block.Bytes[float64](l.n)
	shared := block.Scratch{Free: c.Work[int64(c.Pool.Workers())*size:]}
	losses, weights := block.Take[float64](&shared, len(labels)), block.Take[float64](&shared, len(labels))
	classes, logs := classWeights(c, l.n), setter(output(c, 1))
	block.Parallel(c, len(labels), l.grain(8), size, func(s block.Scratch, from, to int) {
		x, one := block.Take[float64](&s, l.n), make([]float64, 1)
		for i := from; i < to; i++ {
			at := i/l.inner*l.n*l.inner + i%l.inner
			for k := range x {
				number.Read(one, c.In[0], at+k*l.inner)
				x[k] = one[0]
			}
			if soft {
				logSoftmax(x, x)
				for k, v := range x {
					logs(at+k*l.inner, v)
				}
			}
			losses[i], weights[i] = 0, 0
			// An ignored label has no weight either, so that the mean is that of the others.
			if !ignored(c.Node, labels[i]) {
				weights[i] = classes[labels[i]]
				losses[i] = -x[labels[i]] * weights[i]
			}
		}
	})
	writeLoss(c, losses, weights)
	return nil
}

func ignored(n *op.Node, label int64) bool {
	return n.Has("ignore_index") && label == n.Int("ignore_index", 0)
}

func lossLabels(c *op.Call, classes int) ([]int64, error) {
	labels, err := op.Ints(c.In[1])
	if err != nil {
		return nil, err
	}
	for i, label := range labels {
		if (label < 0 || label >= int64(classes)) && !ignored(c.Node, label) {
			return nil, fmt.Errorf("label %d is %d, want a class below %d", i, label, classes)
		}
	}
	return labels, nil
}

func classWeights(c *op.Call, classes int) []float64 {
	weights := make([]float64, classes)
	block.Fill(weights, 1)
	if w := c.Opt(2); w != nil {
		number.Read(weights, w, 0)
	}
	return weights
}

func writeLoss(c *op.Call, losses, weights []float64) {
	out := setter(c.Out[0])
	reduction := c.Text("reduction", "mean")
	if reduction == "none" {
		for i, v := range losses {
			out(i, v)
		}
		return
	}
	// In the order of the labels.
	total, weight := 0.0, 0.0
	for i, v := range losses {
		total += v
		weight += weights[i]
	}
	if reduction == "mean" {
		total /= weight
	}
	out(0, total)
}
