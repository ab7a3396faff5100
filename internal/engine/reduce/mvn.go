package reduce

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func mvnOps() []op.Op {
	return []op.Op{{Type: "MeanVarianceNormalization", Since: 9, Shape: mvnShape, Run: runMVN, Work: groupWork,
		InPlace: []int{0}}}
}

// mvnEpsilon is added to the deviation, by the function that defines the operator.
const mvnEpsilon = 1e-9

func mvnShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Floats.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if _, err := mvnAxes(n, x); err != nil {
		return nil, err
	}
	return []ir.Spec{x.Spec()}, nil
}

func mvnAxes(n *op.Node, x *ir.Array) ([]bool, error) {
	axes := n.Ints("axes")
	if !n.Has("axes") {
		axes = []int64{0, 2, 3}
	}
	return axesMask(axes, len(x.Shape))
}

func runMVN(c *op.Call) error {
	reduced, err := mvnAxes(c.Node, c.In[0])
	if err != nil {
		return err
	}
	l := layoutOf(c.In[0].Shape, reduced)
	if c.In[0].DType == ir.Double {
		mvn(c, l, meanVariance)
	} else {
		mvn(c, l, kernel.MeanVariance)
	}
	return nil
}

func mvn[T floatElement](c *op.Call, l layout, spread func([]T) (mean, variance float64)) {
	in, out := block.Read[T](c.In[0]), block.Write[T](c.Out[0])
	block.Parallel(c, l.outputs, block.Grain/max(4*l.n, 1), groupBytes, func(s block.Scratch, from, to int) {
		bufX, bufY := block.Take[T](&s, block.Len), block.Take[T](&s, block.Len)
		for o := from; o < to; o++ {
			var m meanVar
			l.stretches(o, func(at, n int) { measure(&m, in, at, n, bufX, spread) })
			scale := 1 / (math.Sqrt(m.variance()) + mvnEpsilon)
			l.stretches(o, func(at, n int) { affine(out, in, at, n, m.mean, scale, 0, bufX, bufY) })
		}
	})
}

// stretches calls f for the contiguous ranges of elements of output o: n elements from at on.
func (l layout) stretches(o int, f func(at, n int)) {
	base, step := l.kept.Offset(0, o), l.folded.Step(0)
	l.folded.Runs(0, l.n, func(_, n int, off []int) {
		if step == 1 {
			f(base+off[0], n)
			return
		}
		for i := range n {
			f(base+off[0]+i*step, 1)
		}
	})
}
